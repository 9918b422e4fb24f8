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
from .progress import progress
from .session import OutOfTime
from .solo import add_options, chosen, measure_solo  # noqa: F401 (the same options as solo)

HELP = "where a program's time goes, start-up and compilation included"
CONFIGURATIONS = ("native", "slate-adaptive")


def make_round(session, number, names):
    """Every configuration's programs in random order. A cold run comes directly before its warm one."""
    for configuration in session.random.sample(session.configurations, len(session.configurations)):
        is_slate = isinstance(configuration, SlateConfiguration)
        if is_slate:
            configuration.stop()  # nothing compiled
        for name in session.random.sample(names, len(names)):
            for cold in (True, False) if is_slate else (False,):
                yield configuration, name, cold


def run(session, arguments):
    session.use(arguments.configurations or CONFIGURATIONS)
    session.calibrate(chosen(session, arguments))
    names = list(session.reps)
    slates = sum(isinstance(each, SlateConfiguration) for each in session.configurations)
    total = session.rounds * len(names) * (len(session.configurations) + slates)
    done = 0
    with progress(total, "overhead") as bar:
        for number in range(session.rounds):
            for configuration, name, cold in make_round(session, number, names):
                try:
                    measure_solo(session, configuration, name, number, barrier=False, cold=cold)
                except OutOfTime as limit:
                    session.writer.write("left_out", what="%d of %d runs" % (total - done, total), reason=str(limit))
                    raise
                done += 1
                bar.update()
