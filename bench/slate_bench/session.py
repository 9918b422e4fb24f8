"""One run of slate-bench: its settings, its time limit, and the one way in which everything is measured."""

import contextlib
import os
import random
import sys
import time
from dataclasses import dataclass, field

from .configurations import can_run, make_configurations
from .daemons import DaemonError
from .machine import Machine, resolve
from .programs import UsageError, own_program, read_list
from .progress import progress
from .rows import Writer
from .runner import Job, RunFailed

PROBE = 3  # repetitions from which the length of one is known, by the device's clock
OWN_PROBE = 20  # the same of an own program, whose start-up varies
LONGEST = 1_000_000  # repetitions that a program takes


class OutOfTime(Exception):
    """--max-minutes are over."""


@dataclass
class Session:
    """Made by cli.py; a subcommand gets it. `reference` is the configuration whose solo times stand for one program
    after the other: natively, or on sim, where nothing is native, the first one."""

    build: str
    device: str
    seconds: float
    rounds: int
    seed: int
    max_minutes: float
    slated_settings: str
    traces: str  # folder, or None
    machine: Machine
    writer: Writer
    programs: dict
    configurations: list = field(default_factory=list)
    native: object = None  # also where it is not one of the configurations that are measured
    reps: dict = field(default_factory=dict)
    hashes: dict = field(default_factory=dict)  # of each program's results in the reference configuration
    started: float = field(default_factory=time.monotonic)
    failures: int = 0
    left: str = "everything"  # of the plan, should time run out
    kernels: dict = field(default_factory=dict)  # program, by kernel
    broken: set = field(default_factory=set)  # (configuration, program) that fail when they are alone already

    def __post_init__(self):
        self.random = random.Random(self.seed)

    @property
    def reference(self):
        return self.native or self.configurations[0]

    @property
    def with_reference(self):
        """The configurations, and the one that they are compared with."""
        return [*dict.fromkeys([self.reference, *self.configurations])]

    def use(self, names):
        """Takes the configurations that this machine has, and says which it lacks."""
        self.configurations, lacking = make_configurations(names, self)
        if self.machine.on_gpu:
            found = [each for each in self.configurations if each.name == "native"]
            self.native = found[0] if found else make_configurations(["native"], self)[0][0]
        for name, why in lacking:
            self.say("%s is left out: %s" % (name, why))
            self.writer.write("skipped", configuration=name, reason=why)
        if not self.configurations:
            raise UsageError("this machine has none of the configurations")

    def stop(self):
        """Stops every daemon, also when stopping one of them fails."""
        with contextlib.ExitStack() as stack:
            for configuration in {*self.configurations, *([self.native] if self.native else [])}:
                stack.callback(configuration.stop)

    def check_time(self):
        if self.max_minutes and time.monotonic() - self.started > 60 * self.max_minutes:
            raise OutOfTime("%g minutes are over" % self.max_minutes)

    def measure(self, configuration, jobs, split=None, barrier=True):
        """The outcomes, or None where a program or daemon failed, which a row then says."""
        try:
            done = configuration.run(jobs, self.limit_s(jobs), split, barrier)
            self.check_results([(job.program.name, outcome.hash) for job, outcome in zip(jobs, done)])
        except (RunFailed, DaemonError) as error:
            self.fail(configuration, [job.program.name for job in jobs], split, error)
            return None
        if len(jobs) == 1:
            self.note_kernels(configuration, jobs[0].program.name)
        return done

    def check_results(self, results):
        """RunFailed where a result is not what the reference configuration computed. `results`: (program, hash or None).
        However often a program repeats its kernel, its result is that of one repetition (kernels/common/program.h)."""
        wrong = []
        for name, found in results:
            # The first one is the reference's: calibrate() comes before all else.
            wanted = self.hashes.setdefault(name, found)
            if found and wanted and found != wanted:
                wrong.append("%s %s instead of %s" % (name, found, wanted))
        if wrong:
            raise RunFailed("wrong results: " + ", ".join(wrong))

    def limit_s(self, jobs):
        """Longer than anything takes that still moves: inputs, compilation, and the jobs one after the other."""
        return 60 + 20 * self.seconds * len(jobs)

    def note_kernels(self, configuration, name):
        """Kernels that nobody had before a program ran alone are the program's."""
        if name not in self.kernels.values():
            for kernel in configuration.profile():
                self.kernels.setdefault(kernel["name"], name)

    def fail(self, configuration, names, split, error, label=None):
        """Writes what went wrong; what comes next gets a fresh daemon. `label`, if it is not the configuration's name."""
        self.failures += 1
        label = label or configuration.name
        self.say("%s, %s: %s" % (label, " + ".join(names), error))
        self.writer.write("failure", configuration=label, programs=names, split=split, message=str(error))
        configuration.stop()

    def present(self, names):
        """Those of the names whose programs are built, or own; the others are said."""
        found = []
        for name in names:
            if self.programs[name].reports and not os.path.exists(os.path.join(self.build, "bin", "shared", name)):
                self.say("%s is left out: it is not built" % name)
                self.writer.write("left_out", what=name, reason="not built")
            else:
                found.append(name)
        return found

    def job(self, name):
        return Job(self.programs[name], self.reps[name])

    def calibrate(self, names):
        """How often each program repeats its kernel in the target time. Programs that fail are dropped."""
        for name in names:
            self.check_time()
            rep_ms = self.rep_ms(self.programs[name])
            if rep_ms is None:
                del self.programs[name]
                continue
            self.reps[name] = 1
            if self.programs[name].repeats:
                self.reps[name] = min(LONGEST, max(2, round(1e3 * self.seconds / rep_ms)))
            self.writer.write(
                "calibration",
                program=name,
                configuration=self.reference.name,
                size=self.programs[name].size,
                reps=self.reps[name],
                rep_ms=rep_ms,
            )

    def rep_ms(self, program):
        """One repetition, natively: the median of a few, or from how much longer a process takes with them."""
        if program.reports:
            done = self.measure(self.reference, [Job(program, PROBE)])
            return done and max(1e-3, done[0].report["kernel_ms"])
        once = self.measure(self.reference, [Job(program, 1)])
        if once is None or not program.repeats:
            return once and once[0].loop_ms
        done = self.measure(self.reference, [Job(program, OWN_PROBE)])
        return done and max(1e-3, (done[0].loop_ms - once[0].loop_ms) / (OWN_PROBE - 1))

    def warm_up(self, names):
        """Every program once in each of slate's configurations, so that its code is compiled and known, and one in
        every other, so that its daemon has started."""
        for configuration in self.configurations:
            for name in names if configuration.name.startswith("slate-") else names[:1]:
                self.check_time()
                reps = max(2, self.reps[name] // 4) if self.programs[name].repeats else 1
                if self.can_run(configuration, name) and not self.measure(
                    configuration, [Job(self.programs[name], reps)]
                ):
                    self.say("%s is left out under %s" % (name, configuration.name))
                    self.broken.add((configuration.name, name))

    def steps(self, plan, label, group=lambda step: step):
        """The steps of a list, one after the other, with a bar. OutOfTime, and what is left is said, when time is up;
        but neighbours of the same `group` are begun and finished together."""
        with progress(len(plan), label) as bar:
            for done, step in enumerate(plan):
                if done == 0 or group(step) != group(plan[done - 1]):
                    self.left = "%d of %d runs" % (len(plan) - done, len(plan))
                    self.check_time()
                yield step
                bar.update()

    def can_run(self, configuration, *names):
        """Whether the configuration has a place for these programs, and none failed in it alone."""
        return all(
            can_run(configuration, self.programs[name]) and (configuration.name, name) not in self.broken
            for name in names
        )

    @staticmethod
    def say(text):
        print(text, file=sys.stderr, flush=True)


def make_session(arguments, command):
    """From the command line."""
    device = resolve(arguments.device)
    if device != arguments.device:
        Session.say("device: %s" % device)
    machine = Machine(device)
    sizes = {}
    for text in arguments.size:
        name, equals, number = text.partition("=")
        if not equals or not number.isdigit():
            raise UsageError("--size %s: NAME=NUMBER is wanted" % text)
        sizes[name] = int(number)
    programs = read_list(machine.on_gpu, sizes)
    for text in arguments.program:
        program = own_program(text)
        programs[program.name] = program
    unknown = [name for name in [*sizes, *(arguments.programs or [])] if name not in programs]
    if unknown:
        raise UsageError("no such program: " + ", ".join(unknown))
    seconds = arguments.seconds if arguments.seconds is not None else 0.5 if machine.on_gpu else 0.02
    writer = Writer(arguments.rows, machine, command, device, arguments.seed)
    return Session(
        build=arguments.build,
        device=device,
        seconds=seconds,
        rounds=arguments.rounds,
        seed=arguments.seed,
        max_minutes=arguments.max_minutes,
        slated_settings=arguments.settings,
        traces=arguments.traces,
        machine=machine,
        writer=writer,
        programs=programs,
    )
