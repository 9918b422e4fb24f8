"""arrangements: every arrangement of a pair under slate, against the one that `adaptive` finds by itself.

For each pair: it runs once while slate searches, and again with what was found; then every arrangement is pinned with
`slatectl profile group` and timed: one after the other, both on the whole device, every division of the SMs, and on the
best three divisions every choice of forms. A time is that from the common start to the later end over the sum of the two
times alone under slate; lower is better. `reached` is the best of all over slate's own. The search's length is taken
from the trace: from its first candidate to its last.
"""

import itertools
import json

from . import statistics
from .daemons import DaemonError
from .options import positive
from .pairs import pairs_of
from .runner import Job, RunFailed, makespan

HELP = "every arrangement of a pair, against the one that slate finds"


def add_options(parser):
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="of which 'all' and 'sample:N' make pairs")
    parser.add_argument("--pairs", nargs="*", metavar="PAIRS", help="as for pairs")
    parser.add_argument(
        "--search-seconds",
        type=positive(float),
        default=2,
        help="native time alone while slate searches, which takes its time (%(default)s)",
    )
    parser.add_argument(
        "--units", type=positive(int, least=1), help="divisions of the device; by default of 8 SMs each"
    )


class Arrangements:
    def __init__(self, session, arguments):
        self.session = session
        self.arguments = arguments
        self.slate = session.configurations[0]
        self.alone = {}

    def slatectl(self, *command):
        done = self.slate.slatectl(*command)
        if done.returncode:
            raise RunFailed("slatectl %s: %s" % (" ".join(command), done.stderr.strip()))
        return done.stdout

    def profile(self):
        return json.loads(self.slatectl("profile", "--json"))

    def run(self, names, factor=1.0):
        jobs = [Job(self.session.programs[name], max(2, round(factor * self.session.reps[name]))) for name in names]
        done = self.slate.run(jobs, self.session.limit_s(jobs) * max(1.0, factor))
        self.session.check_results([(name, outcome.hash) for name, outcome in zip(names, done)])
        return makespan(done)

    def learn(self, name):
        self.alone[name] = statistics.median([self.run([name]) for _ in range(3)])

    def ratio(self, pair):
        times = [self.run(pair) for _ in range(self.session.rounds)]
        return statistics.median(times) / sum(self.alone[name] for name in pair)

    def search(self, pair):
        """Slate's own arrangement and how long it took to find: (group, ms); (None, None) if the programs hardly met."""
        known = {key(group) for group in self.profile()["groups"]}
        self.run(pair, self.arguments.search_seconds / self.session.seconds)
        groups = [group for group in self.profile()["groups"] if key(group) not in known]
        if not groups:
            return None, None
        # Twice the time alone of both is the most that the run took.
        events = json.loads(self.slatectl("trace", "--out", "-", "--last", "%g" % (4 * self.arguments.search_seconds)))[
            "traceEvents"
        ]
        at = [event["ts"] for event in events if event.get("name") == "search"]
        return groups[0], (max(at) - min(at)) / 1e3 if at else None

    def pin(self, kernels, how):
        self.slatectl("profile", "group", *("#%d" % kernel for kernel in kernels), *how)

    def forms(self, kernels):
        """Choices of forms, other than both native, for kernels that have been workers."""
        rows = {row["id"]: row for row in self.profile()["kernels"]}
        families = [["native"] + (["worker"] if "worker" in rows[kernel]["alone"] else []) for kernel in kernels]
        return [",".join(choice) for choice in itertools.product(*families) if "worker" in choice]

    def sweep(self, pair, kernels):
        """{arrangement: ratio}"""
        sm_count = self.profile()["sm_count"]
        found, how_of = {}, {}
        for name, how in divisions(self.arguments.units or max(2, sm_count // 8), sm_count):
            try:
                self.pin(kernels, how)
            except RunFailed as error:  # a division that the device's units do not allow
                self.session.say("%s left out: %s" % (name, error))
                continue
            found[name], how_of[name] = self.ratio(pair), how
        for name in sorted((name for name in found if name.startswith("split")), key=found.get)[:3]:
            for forms in self.forms(kernels):
                self.pin(kernels, how_of[name] + ["--forms", forms])
                found["%s %s" % (name, forms)] = self.ratio(pair)
        return found

    def measure(self, pair):
        group, search_ms = self.search(pair)
        if group is None:
            self.session.say("%s: no arrangement was found, the programs hardly met" % " + ".join(pair))
            self.session.writer.write("left_out", what=" + ".join(pair), reason="no arrangement was found")
            return
        own = self.ratio(pair)  # as it was found, before anything is pinned
        found = self.sweep(pair, [kernel["id"] for kernel in group["kernels"]])
        best = min(found, key=found.get)
        self.session.writer.write(
            "arrangements",
            programs=list(pair),
            own=own,
            own_arrangement=describe(group),
            best=best,
            reached=found[best] / own,
            search_ms=search_ms,
            candidates=group["samples"],
            ratios=found,
        )


def key(group):
    return tuple(sorted(kernel["id"] for kernel in group["kernels"]))


def divisions(units, sm_count):
    yield "alone", ["--alone"]
    yield "together", ["--together"]
    for first in range(1, units):
        sms = first * (sm_count // units)
        yield "split %d" % sms, ["--sms", "%d,%d" % (sms, sm_count - sms)]


def describe(group):
    """What slate found, in words."""
    if group["sharing"] == "alone":
        return "alone"
    members = [
        "%s on %d%s"
        % (
            kernel.get("form", "native"),
            kernel["sms"],
            ", %d an SM" % kernel["blocks_per_sm"] if kernel["blocks_per_sm"] else "",
        )
        for kernel in group["kernels"]
    ]
    return "%s: %s" % (group["sharing"], "; ".join(members))


def run(session, arguments):
    pairs = pairs_of(session, arguments)
    session.use(["slate-adaptive"])
    session.calibrate(list(dict.fromkeys(name for pair in pairs for name in pair)))
    pairs = [pair for pair in pairs if session.reps.keys() >= set(pair)]
    arrangements = Arrangements(session, arguments)
    for names in session.steps([*((name,) for name in session.reps), *pairs], "arrangements"):
        try:
            arrangements.learn(*names) if len(names) == 1 else arrangements.measure(names)
        except (RunFailed, DaemonError) as error:
            session.fail(arrangements.slate, list(names), None, error)
