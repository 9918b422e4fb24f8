"""fairness: how the device is shared out between equal programs, and between programs of unequal weight.

equal: --count copies of a program at once, the same work each; the ratio is the last end over the first one. weights:
two copies, of which the second has three times the weight and three times the work; if shares are as the weights, both
end at once, and the ratio, the later end over the earlier, is 1.
"""

from .options import positive
from .runner import Job, times_from_common_start
from .solo import prepare

HELP = "shares of equal programs, and of weights 1 to 3"
CONFIGURATIONS = ("native", "mps", "slate-adaptive", "slate-timeslice")
HEAVY = 3


def add_options(parser):
    parser.add_argument(
        "--programs",
        nargs="*",
        metavar="NAME",
        default=["black_scholes", "sgemm", "fma_loop", "stream_read"],
        help="(%(default)s)",
    )
    parser.add_argument("--count", type=positive(int, least=1), default=8, help="of equal programs (%(default)s)")


def jobs_of(session, name, what, count):
    program, reps = session.programs[name], session.reps[name]
    if what == "equal":
        return [Job(program, reps)] * count
    return [Job(program, reps, (("SLATE_WEIGHT", "1"),)), Job(program, HEAVY * reps, (("SLATE_WEIGHT", str(HEAVY)),))]


def run(session, arguments):
    names = prepare(session, arguments, CONFIGURATIONS)
    session.warm_up(names)
    plan = [
        (number, configuration, name, what)
        for number in range(session.rounds)
        for configuration in session.configurations
        if not configuration.has_splits
        for name in names
        if session.can_run(configuration, name)
        for what in ("equal", "weights")
        if what == "equal" or configuration.name.startswith("slate-")  # nobody else has weights
    ]
    session.random.shuffle(plan)
    plan.sort(key=lambda step: step[0])
    for number, configuration, name, what in session.steps(plan, "fairness"):
        outcomes = session.measure(configuration, jobs_of(session, name, what, arguments.count))
        if outcomes:
            times = times_from_common_start(outcomes)
            session.writer.write(
                "fairness",
                program=name,
                configuration=configuration.name,
                what=what,
                count=len(times),
                round=number,
                times_ms=times,
                hashes=[each.hash for each in outcomes],
                ratio=max(times) / min(times),
            )
