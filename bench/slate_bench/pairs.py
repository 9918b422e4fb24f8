"""pairs: two programs at once in each configuration, against one after the other natively.

Each program repeats its kernel for --seconds of its own native time, natively or not. A pair's time is from the common
start, after the inputs are on the device, to the later end; what it is compared with is the sum of the native times
alone of the same run.
"""

from .configurations import DEFAULT
from .programs import UsageError, choose_pairs
from .runner import makespan, times_from_common_start
from .solo import measure_solo

HELP = "pairs of programs at once, against one after the other"


def add_options(parser):
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="of which 'all' and 'sample:N' make pairs")
    parser.add_argument(
        "--pairs",
        nargs="*",
        metavar="PAIRS",
        help="paper, sample:N, all, or A,B; by default the paper's 15, and all with own programs in them",
    )
    parser.add_argument(
        "--splits", default="25/75,50/50,75/25", help="percentages that mps-split and green try (%(default)s)"
    )


def parse_splits(text):
    splits = []
    for part in text.split(","):
        try:
            split = [float(share) for share in part.split("/")]
        except ValueError:
            split = []
        if len(split) != 2 or not all(0 < share <= 100 for share in split):
            raise UsageError("--splits %s: pairs of percentages are wanted, as 25/75" % part)
        splits.append([int(share) if share.is_integer() else share for share in split])
    return splits


def pairs_of(session, arguments):
    """The pairs whose programs are here, and the programs of those pairs."""
    owns = {name for name, program in session.programs.items() if not program.reports}
    named = {name: session.programs[name] for name in dict.fromkeys([*(arguments.programs or session.programs), *owns])}
    if arguments.pairs:
        pairs = choose_pairs(arguments.pairs, session.programs if not arguments.programs else named, session.seed)
    elif owns or arguments.programs:
        pairs = choose_pairs(["all"], named, session.seed)
        pairs = [pair for pair in pairs if not owns or owns & set(pair)]
    else:
        pairs = choose_pairs(["paper"], named, session.seed)
    here = set(session.present(dict.fromkeys(name for pair in pairs for name in pair)))
    return [pair for pair in pairs if here.issuperset(pair)]


def make_plan(session, pairs, splits):
    """[(round, configuration, names, split)] in the order of measurement: round by round, in each first the solo times
    that everything is compared with, then pair by pair at random, a pair's configurations at random. So a run that is
    cut short has whole pairs, and what is compared was measured within seconds."""
    plan = []
    for number in range(session.rounds):
        solos = [(number, session.reference, (name,), None) for name in session.reps]
        session.random.shuffle(solos)
        plan += solos
        for pair in session.random.sample(pairs, len(pairs)):
            steps = [
                (number, configuration, pair, split)
                for configuration in session.configurations
                if session.can_run(configuration, *pair)
                for split in (splits if configuration.has_splits else [None])
            ]
            session.random.shuffle(steps)
            plan += steps
    return plan


def measure_pair(session, number, configuration, pair, split):
    done = session.measure(configuration, [session.job(name) for name in pair], split)
    if done is None:
        return
    session.writer.write(
        "pair",
        programs=list(pair),
        configuration=configuration.name,
        split=split,
        sms=done[0].report.get("sms"),
        reps=[session.reps[name] for name in pair],
        round=number,
        makespan_ms=makespan(done),
        times_ms=times_from_common_start(done),
        hashes=[each.hash for each in done],
    )


def run(session, arguments):
    splits = parse_splits(arguments.splits)
    pairs = pairs_of(session, arguments)
    session.use(arguments.configurations or DEFAULT)
    session.calibrate(list(dict.fromkeys(name for pair in pairs for name in pair)))
    pairs = [pair for pair in pairs if session.reps.keys() >= set(pair)]
    session.warm_up(list(session.reps))
    plan = make_plan(session, pairs, splits)
    session.say("%d pairs, %d runs" % (len(pairs), len(plan)))
    for number, configuration, names, split in session.steps(plan, "pairs", group=lambda step: (step[0], step[2])):
        if len(names) == 1:
            measure_solo(session, configuration, names[0], number, barrier=True)
        else:
            measure_pair(session, number, configuration, names, split)
