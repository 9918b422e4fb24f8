"""mix: programs that arrive over time, as on a shared machine, in each configuration and one at a time natively.

    # seconds after the first arrival, program, seconds of its own native time (--seconds if not said)
    0.0   sgemm         0.5
    0.12  black_scholes

Without --file, --arrivals programs are drawn, with exponential gaps, from the seed. Every program is a process of its
own from its arrival to its end, start-up included. "one-at-a-time" starts a program when the one before has ended.
"""

import random
import time

from .daemons import DaemonError
from .options import positive
from .programs import UsageError
from .runner import Job, Process, RunFailed, reports_in, take_report

HELP = "programs that arrive over time"
CONFIGURATIONS = ("native", "mps", "slate-adaptive")
ONE_AT_A_TIME = "one-at-a-time"


def add_options(parser):
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="from which arrivals are drawn")
    parser.add_argument("--file", help="the arrivals, instead of drawn ones")
    parser.add_argument("--arrivals", type=positive(int), default=32, help="how many are drawn (%(default)s)")
    parser.add_argument("--mean-gap", type=positive(float), help="seconds between two (0.4 of --seconds)")


def read_arrivals(path, programs, seconds):
    """[(seconds after the first arrival, name, native seconds)] by time."""
    arrivals = []
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                at, name, *length = words
                arrivals.append((float(at), name, float(*length) if length else seconds))
                good = arrivals[-1][0] >= 0 and arrivals[-1][2] > 0 and name in programs
            except (ValueError, TypeError):
                good = False
            if not good:
                raise UsageError(
                    "%s:%d: SECONDS PROGRAM [SECONDS] is wanted, with a program that is known" % (path, number)
                )
    if not arrivals:
        raise UsageError("%s: no arrivals" % path)
    first = min(arrivals)[0]
    return sorted((at - first, name, length) for at, name, length in arrivals)


def draw_arrivals(names, count, mean_gap, seconds, seed):
    """Every program about as often as any, in random order, with exponential gaps."""
    source = random.Random(seed)
    drawn = (list(names) * (count // len(names) + 1))[:count]
    source.shuffle(drawn)
    at, arrivals = 0.0, []
    for name in drawn:
        arrivals.append((at, name, seconds))
        at += source.expovariate(1 / mean_gap)
    return arrivals


class Mix:
    """One passage of all arrivals."""

    def __init__(self, session, configuration, arrivals, one_at_a_time):
        self.session = session
        self.configuration = configuration
        self.one_at_a_time = one_at_a_time
        self.arrivals = arrivals
        self.processes = []

    def process_of(self, name, length):
        reps = (
            max(1, round(self.session.reps[name] * length / self.session.seconds))
            if self.session.programs[name].repeats
            else 1
        )
        job = Job(self.session.programs[name], reps)
        return Process(self.configuration.commands([job], [None], None)[0]), job

    def run(self, limit_s):
        """The row's jobs. RunFailed when a program fails, has a wrong result, or all together take longer than `limit_s`."""
        self.configuration.start()
        made = [self.process_of(name, length) for _, name, length in self.arrivals]
        self.processes = [process for process, _ in made]
        start = time.monotonic()
        deadline = start + limit_s
        try:
            for (at, _, _), process in zip(self.arrivals, self.processes):
                time.sleep(max(0.0, start + at - time.monotonic()))
                process.start()
                if self.one_at_a_time:
                    self.finish(process, deadline)
            for process in self.processes:
                self.finish(process, deadline)
            self.configuration.verify()
        finally:
            for process in self.processes:
                process.kill()
        hashes = [take_report(reports_in(process.output), job, process).get("hash") for process, job in made]
        self.session.check_results([(job.program.name, found) for (_, job), found in zip(made, hashes)])
        return [
            {
                "program": name,
                "reps": job.reps,
                "hash": found,
                "arrival_ms": 1e3 * at,
                "started_ms": process.started_ms - 1e3 * start,
                "ended_ms": process.ended_ms - 1e3 * start,
            }
            for (at, name, _), (process, job), found in zip(self.arrivals, made, hashes)
        ]

    @staticmethod
    def finish(process, deadline):
        process.thread.join(max(0.0, deadline - time.monotonic()))
        if process.thread.is_alive():
            raise RunFailed("not done in time: %s" % " ".join(process.command.words))
        process.check()


def figures(jobs):
    """makespan_ms, throughput_per_s and mean_turnaround_ms of a row."""
    makespan = max(job["ended_ms"] for job in jobs)
    return {
        "makespan_ms": makespan,
        "throughput_per_s": 1e3 * len(jobs) / makespan,
        "mean_turnaround_ms": sum(job["ended_ms"] - job["arrival_ms"] for job in jobs) / len(jobs),
    }


def measure(session, name, configuration, arrivals, number):
    try:
        jobs = Mix(session, configuration, arrivals, name == ONE_AT_A_TIME).run(
            60 + 20 * sum(each[2] for each in arrivals)
        )
    except (RunFailed, DaemonError) as error:
        session.fail(configuration, sorted({program for _, program, _ in arrivals}), None, error, name)
        return
    session.writer.write("mix", configuration=name, round=number, jobs=jobs, **figures(jobs))


def run(session, arguments):
    session.use(arguments.configurations or CONFIGURATIONS)
    names = arguments.programs or list(session.programs)
    if arguments.file:
        arrivals = read_arrivals(arguments.file, session.programs, session.seconds)
        names = sorted({name for _, name, _ in arrivals})
    session.calibrate(session.present(names))
    if arguments.file and set(names) - set(session.reps):
        raise UsageError(
            "%s has programs that cannot run here: %s" % (arguments.file, ", ".join(set(names) - set(session.reps)))
        )
    if not arguments.file:
        gap = arguments.mean_gap or 0.4 * session.seconds
        arrivals = draw_arrivals(list(session.reps), arguments.arrivals, gap, session.seconds, session.seed)
    session.warm_up(list(session.reps))
    modes = [(ONE_AT_A_TIME, session.reference)] + [
        (each.name, each) for each in session.configurations if not each.has_splits
    ]
    plan = [(number, *mode) for number in range(session.rounds) for mode in session.random.sample(modes, len(modes))]
    for number, name, configuration in session.steps(plan, "mix"):
        measure(session, name, configuration, arrivals, number)
