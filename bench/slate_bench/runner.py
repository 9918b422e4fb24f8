"""Starts programs together and takes their times.

Programs that know --barrier have their input on the device when they say so; then one file lets all go at once. Each
waits for a link of its own to that file, because two of them may be threads of one process (green_pair), and what a
program writes to say that it is there carries its process id. Others are started when the barrier opens.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

READY_POLL_S = 0.001


class RunFailed(Exception):
    """A program did not do what it should; the message says which one and what it printed last."""


@dataclass(frozen=True)
class Job:
    """A program, how often it repeats its kernel, and what its environment has besides the configuration's."""

    program: object
    reps: int = 1
    environment: tuple = ()


@dataclass
class Command:
    """One process: its words, environment, and the jobs (by index) that run in it."""

    words: list
    environment: dict
    jobs: list
    waits: bool  # at the barrier


@dataclass
class Outcome:
    """Of one job, milliseconds of the monotonic clock. `report` is what the program printed; an own program's is made of
    its process's times."""

    report: dict
    process_started_ms: float
    process_ended_ms: float

    @property
    def started_ms(self):
        return self.report["loop_started_ms"]

    @property
    def ended_ms(self):
        return self.report["loop_started_ms"] + self.report["loop_ms"]

    @property
    def loop_ms(self):
        return self.report["loop_ms"]

    @property
    def hash(self):
        """Of its results; None of an own program."""
        return self.report.get("hash")

    @property
    def application_ms(self):
        return self.process_ended_ms - self.process_started_ms


def makespan(outcomes):
    """Milliseconds from the first start to the last end."""
    return max(each.ended_ms for each in outcomes) - min(each.started_ms for each in outcomes)


def times_from_common_start(outcomes):
    """Of each program the time from the first start of all to its own end."""
    start = min(each.started_ms for each in outcomes)
    return [each.ended_ms - start for each in outcomes]


def now_ms():
    return 1000 * time.monotonic()


@dataclass
class Process:
    """A running command. A thread of its own waits for its end, so that the end's time is right."""

    command: Command
    popen: subprocess.Popen = None
    started_ms: float = 0
    ended_ms: float = 0
    output: str = ""
    errors: str = ""
    thread: threading.Thread = field(default=None, repr=False)

    def start(self):
        self.started_ms = now_ms()
        try:
            self.popen = subprocess.Popen(
                self.command.words,
                env=self.command.environment,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise RunFailed("%s: %s" % (self.command.words[0], error)) from error
        self.thread = threading.Thread(target=self.wait, daemon=True)
        self.thread.start()

    def wait(self):
        self.output, self.errors = self.popen.communicate()
        self.ended_ms = now_ms()

    def running(self):
        return self.popen.poll() is None

    def check(self):
        if self.popen.returncode:
            said = (self.errors.strip() or self.output.strip())[-300:]
            raise RunFailed("%s ended with %d: %s" % (" ".join(self.command.words), self.popen.returncode, said))

    def kill(self):
        """With its children: it leads a session."""
        if self.popen is None or self.popen.poll() is not None:
            return
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        # An interrupt may have come before the thread was started.
        self.thread.join() if self.thread and self.thread.ident else self.popen.wait()


def run_together(make_commands, jobs, limit_s, when_ready=lambda count: None):
    """Runs all jobs at once: [Outcome], in their order. `make_commands(jobs, barriers)` gives the commands, where
    barriers[i] is the file that job i waits for. `when_ready` is called when all processes that wait, so many, are there.
    RunFailed if one fails or all together take longer than `limit_s`."""
    deadline = time.monotonic() + limit_s
    with tempfile.TemporaryDirectory(prefix="slate-bench-go-") as root:
        go = os.path.join(root, "go")
        barriers = ["%s.%d" % (go, index) for index in range(len(jobs))]
        for barrier in barriers:
            os.symlink(go, barrier)
        processes = [Process(command) for command in make_commands(jobs, barriers)]
        waiting = [process for process in processes if process.command.waits]
        try:
            for process in waiting:
                process.start()
            expected = len(barriers) + sum(len(process.command.jobs) for process in waiting)
            wait_until_ready(root, expected, waiting, deadline)
            when_ready(len(waiting))
            open(go, "w").close()
            for process in processes:
                if not process.command.waits:
                    process.start()
            wait_for_ends(processes, deadline)
        finally:
            for process in processes:
                process.kill()
    return outcomes_of(processes, jobs)


def wait_until_ready(root, count, processes, deadline):
    while len(os.listdir(root)) < count:
        for process in processes:
            if not process.running():
                process.thread.join()
                process.check()
                raise RunFailed("%s ended before the start" % " ".join(process.command.words))
        if time.monotonic() > deadline:
            raise RunFailed("not ready in time: %s" % "; ".join(" ".join(p.command.words) for p in processes))
        time.sleep(READY_POLL_S)


def wait_for_ends(processes, deadline):
    for process in processes:
        process.thread.join(max(0.0, deadline - time.monotonic()))
        if process.thread.is_alive():
            raise RunFailed("not done in time: %s" % " ".join(process.command.words))
        process.check()


def outcomes_of(processes, jobs):
    outcomes = [None] * len(jobs)
    for process in processes:
        reports = reports_in(process.output)
        for index in process.command.jobs:
            outcomes[index] = Outcome(take_report(reports, jobs[index], process), process.started_ms, process.ended_ms)
    return outcomes


def reports_in(output):
    found = []
    for line in output.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def take_report(reports, job, process):
    """The program's report, taken out of those of its process."""
    if not job.program.reports:
        return {"loop_started_ms": process.started_ms, "loop_ms": process.ended_ms - process.started_ms}
    for report in reports:
        if report.get("program") == job.program.name and report.get("reps") == job.reps:
            reports.remove(report)
            sms = next((each["sms"] for each in reports if "sms" in each), None)
            return dict(report, sms=sms) if sms else report
    raise RunFailed("%s printed no report: %s" % (" ".join(process.command.words), process.output[-300:]))
