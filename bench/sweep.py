"""Every arrangement of a pair of programs, against the one that `adaptive` finds by itself.

    python3 bench/sweep.py --build build/release --json sweep.jsonl [--only A,B C,D] [--seconds 0.15]

For each pair: the pair runs once with an empty memory, so that slate searches, and again with what it found; then every
arrangement is pinned with `slatectl profile group` and timed: one after the other, both on the whole device, every
division of the SMs, and on the best three divisions every choice of forms. A time is that from
the common start to the later end, of --seconds of each program alone, over the sum of the two times alone; lower is
better. `reached` is the best of the sweep over slate's own. The search's length is taken from the trace: from its
first candidate to its last.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess

from pairs import PROGRAMS, TINY, Runner, makespan
from private_slated import private_slated


class Sweep:
    def __init__(self, arguments, runner, environment):
        self.arguments = arguments
        self.runner = runner
        self.environment = environment
        self.reps = {}
        self.alone = {}

    def slatectl(self, *command):
        done = subprocess.run([os.path.join(self.arguments.build, "bin", "slatectl"), *command],
                              env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError("slatectl %s: %s" % (" ".join(command), done.stderr.strip()))
        return done.stdout

    def profile(self):
        return json.loads(self.slatectl("profile", "--json"))

    def learn(self, name):
        """Its time alone under slate, once slate has chosen its form."""
        reps = self.runner.reps_for(name, self.arguments.seconds, self.arguments.probe, self.environment, "slate")
        self.reps[name] = reps
        self.alone[name] = statistics.median(
            self.runner.run([(name, reps)], self.environment, "slate")[0]["loop_ms"] for _ in range(3))

    def ratio(self, pair):
        jobs = [(name, self.reps[name]) for name in pair]
        times = [makespan(self.runner.run(jobs, self.environment, "slate")) for _ in range(self.arguments.rounds)]
        return statistics.median(times) / sum(self.alone[name] for name in pair)

    def search(self, pair):
        """Slate's own arrangement and how long it took to find: (group, ms)."""
        factor = self.arguments.search_seconds / self.arguments.seconds
        jobs = [(name, max(2, round(self.reps[name] * factor))) for name in pair]
        known = {self.key(group) for group in self.profile()["groups"]}
        self.runner.run(jobs, self.environment, "slate")
        groups = [group for group in self.profile()["groups"] if self.key(group) not in known]
        if not groups:
            return None, None
        path = os.path.join(os.path.dirname(self.environment["SLATE_STATE_DIR"]), "trace.json")
        self.slatectl("trace", "--out", path, "--last", "%g" % (4 * self.arguments.search_seconds))
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        at = [event["ts"] for event in events if event.get("name") == "search"]
        return groups[0], (max(at) - min(at)) / 1e3 if at else None

    @staticmethod
    def key(group):
        return tuple(sorted(kernel["id"] for kernel in group["kernels"]))

    def pin(self, kernels, *how):
        self.slatectl("profile", "group", *("#%d" % kernel for kernel in kernels), *how)

    def arrangements(self, units, sm_count):
        yield "alone", ["--alone"]
        yield "together", ["--together"]
        for first in range(1, units):
            sms = first * (sm_count // units)
            yield "split %d" % sms, ["--sms", "%d,%d" % (sms, sm_count - sms)]

    def forms(self, kernels):
        """Choices of forms, other than both native, for kernels that have been workers."""
        rows = {row["id"]: row for row in self.profile()["kernels"]}
        families = [["native"] + (["worker"] if "worker" in rows[kernel]["alone"] else []) for kernel in kernels]
        return [",".join(choice) for choice in itertools.product(*families) if "worker" in choice]

    def sweep(self, pair, kernels):
        profile = self.profile()
        sm_count = profile["sm_count"]
        found = {}
        for name, how in self.arrangements(self.arguments.units or sm_count // 8, sm_count):
            try:
                self.pin(kernels, *how)
            except RuntimeError as error:  # a division that the units do not allow
                print("  %s left out: %s" % (name, error))
                continue
            found[name] = (self.ratio(pair), how)
        splits = sorted((name for name in found if name.startswith("split")), key=lambda name: found[name][0])
        for name in splits[:3]:
            for forms in self.forms(kernels):
                how = found[name][1] + ["--forms", forms]
                self.pin(kernels, *how)
                found["%s %s" % (name, forms)] = (self.ratio(pair), how)
        return found

    @staticmethod
    def describe(group):
        """What slate found, in words."""
        if group["sharing"] == "alone":
            return "alone"
        members = ["%s on %d%s" % (kernel.get("form", "native"), kernel["sms"],
                                   ", %d an SM" % kernel["blocks_per_sm"] if kernel["blocks_per_sm"] else "")
                   for kernel in group["kernels"]]
        return "%s: %s" % (group["sharing"], "; ".join(members))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.15, help="of each program alone, for each arrangement")
    parser.add_argument("--search-seconds", type=float, default=0.5, help="the same while slate searches")
    parser.add_argument("--rounds", type=int, default=1, help="times that each arrangement is measured")
    parser.add_argument("--units", type=int, help="divisions of the device; by default of 8 SMs each")
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--only", nargs="*", help="pairs as A,B; all by default")
    parser.add_argument("--settings", default="", help="further TOML for slated")
    parser.add_argument("--json", help="file for the rows, appended to")
    arguments = parser.parse_args()
    real = arguments.device.startswith("cuda")
    arguments.probe = 50 if real else 2
    runner = Runner(arguments.build, PROGRAMS if real else TINY)
    pairs = ([tuple(pair.split(",")) for pair in arguments.only] if arguments.only else
             list(itertools.combinations_with_replacement(arguments.programs, 2)))
    rows = open(arguments.json, "a") if arguments.json else None
    with private_slated(arguments.build, arguments.device, 'policy = "adaptive"\n' + arguments.settings) as environment:
        sweep = Sweep(arguments, runner, environment)
        for name in sorted({name for pair in pairs for name in pair}):
            sweep.learn(name)
        for pair in pairs:
            group, search_ms = sweep.search(pair)
            if group is None:
                print("%-14s %-14s no arrangement was found: the programs hardly met" % pair)
                continue
            kernels = [kernel["id"] for kernel in group["kernels"]]
            own = sweep.ratio(pair)  # as it was found, before anything is pinned
            found = sweep.sweep(pair, kernels)
            best = min(found, key=lambda name: found[name][0])
            print("%-14s %-14s best %.3f (%s), slate's %.3f (%s), reached %.3f, search %s ms, %d candidates" %
                  (*pair, found[best][0], best, own, sweep.describe(group), found[best][0] / own,
                   "%.0f" % search_ms if search_ms is not None else "?", group["samples"]), flush=True)
            if rows:
                rows.write(json.dumps({"pair": pair, "own": own, "own_arrangement": sweep.describe(group), "best": best,
                                       "reached": found[best][0] / own, "search_ms": search_ms,
                                       "sweep": {name: ratio for name, (ratio, _) in found.items()}}) + "\n")
                rows.flush()


if __name__ == "__main__":
    main()
