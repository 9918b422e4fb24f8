"""overhead: where the time of each program goes that runs alone, as in Figure 6 of the Slate paper.

Each round starts slated anew with nothing compiled, so that every program's first run, the cold one, injects and
compiles; the next one finds its code. Natively there is nothing cold. The parts are computed from those rows:

  kernels   repetitions times the median of one by the device's clock
  launches  the loop's time beyond its kernels: launch calls, and under slate its rings and its engine
  set-up    from main() to the first result, without the loop: CUDA's start, allocations, copies, first launches
  process   the rest: loading the program, making and hashing data, its end
  injection cold less warm: rewriting, compiling, counting the kernel's instructions once
"""

from .configurations import SlateConfiguration
from .solo import add_options, measure_solo, prepare  # noqa: F401 (the same options as solo)

HELP = "where a program's time goes, start-up and compilation included"
CONFIGURATIONS = ("native", "slate-adaptive")


def make_round(session, number, names):
    """Every configuration's programs in random order: (configuration, program, round, cold, daemon anew). Of slate's, a
    cold run comes directly before its warm one, and the first cold one finds a daemon with nothing compiled."""
    steps = []
    for configuration in session.random.sample(session.with_reference, len(session.with_reference)):
        is_slate = isinstance(configuration, SlateConfiguration)
        for index, name in enumerate(session.random.sample(names, len(names))):
            for cold in (True, False) if is_slate else (False,):
                steps.append((configuration, name, number, cold, cold and index == 0))
    return steps


def run(session, arguments):
    names = prepare(session, arguments, CONFIGURATIONS)
    plan = [step for number in range(session.rounds) for step in make_round(session, number, names)]
    for configuration, name, number, cold, anew in session.steps(plan, "overhead", group=lambda step: step[:3]):
        if anew:
            configuration.stop()
        measure_solo(session, configuration, name, number, barrier=False, cold=cold)
