"""The ways in which the same programs share the GPU.

native        as they are: time slicing by the driver
mps           NVIDIA's Multi-Process Service as it comes
mps-split     the same with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, for each of --splits; the best one counts
green         green contexts of one process, for each of --splits; the best one counts (green_pair.cc)
slate-POLICY  a slated with that policy: adaptive, table, timeslice, fifo

A daemon starts with the first run that needs it and stays: idle ones take memory and no time. What a machine lacks is
known before anything is measured, and said.
"""

import contextlib
import json
import math
import os
import subprocess
import tempfile
import time

from .daemons import DaemonError, Mps, private_slated, without_mps
from .runner import Command, run_together

POLICIES = ("adaptive", "table", "timeslice", "fifo")
NAMES = ("native", "mps", "mps-split", "green") + tuple("slate-" + policy for policy in POLICIES)
DEFAULT = ("native", "mps", "mps-split", "green", "slate-adaptive", "slate-table", "slate-fifo")
RIVAL_SPLITS = ("mps-split", "green")
TRACE_MARGIN_S = 10


def plain_environment(index):
    """The caller's, without what would lead a program to a daemon that is not ours."""
    environment = {key: value for key, value in without_mps(os.environ).items() if not key.startswith("SLATE_")}
    if index:
        environment["CUDA_VISIBLE_DEVICES"] = str(index)
    return environment


class Configuration:
    """One way. `split` is a list of shares in percent, one a job, for configurations with `has_splits`."""

    has_splits = False

    def __init__(self, name, setting):
        self.name = name
        self.build = setting.build
        self.device = setting.device
        self.index = setting.machine.index or 0
        self.on_gpu = setting.machine.on_gpu
        self.nowhere = None

    def missing(self):
        """Why it cannot be measured here; None if it can."""
        return None if self.on_gpu else "sim has slate's configurations only"

    def start(self):
        """Starts what it needs, once: natively a directory without an MPS, as there may be one in the usual place."""
        if self.nowhere is None:
            self.nowhere = tempfile.TemporaryDirectory(prefix="slate-bench-no-mps-")

    def stop(self):
        """Stops it, and removes what it left."""
        if self.nowhere is not None:
            self.nowhere.cleanup()
            self.nowhere = None

    def verify_waiting(self, count):
        """DaemonError if not all of the processes that wait for the start, so many, are going to run in this way."""

    def verify(self):
        """DaemonError if programs that have run did not run in this way."""

    def profile(self):
        """What it has learnt of kernels: docs/slatectl.md's kernels[]."""
        return []

    def run(self, jobs, limit_s, split=None, barrier=True):
        """[Outcome] of the jobs, all at once. Without the barrier, which applications do not have, programs begin as
        soon as they are ready."""
        self.start()

        def make(jobs, barriers):
            return self.commands(jobs, barriers if barrier else [None] * len(jobs), split)

        outcomes = run_together(make, jobs, limit_s, self.verify_waiting)
        self.verify()
        return outcomes

    def commands(self, jobs, barriers, split):
        made = []
        for index, (job, barrier) in enumerate(zip(jobs, barriers)):
            words = self.prefix() + job.program.words(self.binary(job), job.reps, warm_of(job), barrier)
            environment = dict(self.environment(index, split), **dict(job.environment))
            made.append(Command(words, environment, [index], job.program.reports and barrier is not None))
        return made

    def binary(self, job):
        return os.path.join(self.build, "bin", "shared", job.program.name)

    def prefix(self):
        return []

    def environment(self, index, split):
        return dict(plain_environment(self.index), CUDA_MPS_PIPE_DIRECTORY=self.nowhere.name)


def warm_of(job):
    """Launches before those that are timed: they load the code too."""
    return max(1, job.reps // 100)


class SharedMps:
    """One MPS for the two configurations that need it."""

    def __init__(self, index):
        self.index = index
        self.mps = None

    def start(self):
        if self.mps is None:
            self.mps = Mps(self.index)

    def stop(self):
        if self.mps is not None:
            self.mps.stop()
            self.mps = None


class MpsConfiguration(Configuration):
    def __init__(self, name, setting, shared):
        super().__init__(name, setting)
        self.shared = shared
        self.has_splits = name == "mps-split"

    def missing(self):
        return super().missing() or (None if Mps.is_here() else "%s is not installed" % Mps.TOOL)

    def start(self):
        self.shared.start()

    def stop(self):
        self.shared.stop()

    def verify_waiting(self, count):
        if count and self.shared.mps.client_count() < count:
            raise DaemonError("programs run past MPS: it has fewer clients than %d" % count)

    def verify(self):
        if not self.shared.mps.serves():
            raise DaemonError("programs ran past MPS: it has no server")

    def environment(self, index, split):
        # NVIDIA's programs find the daemon by the directory; everything else is as natively.
        environment = plain_environment(0)
        environment.update(
            {key: value for key, value in self.shared.mps.environment.items() if key.startswith("CUDA_MPS_")}
        )
        if split:
            environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(split[index])
        return environment


class GreenConfiguration(Configuration):
    has_splits = True

    def missing(self):
        runner = os.path.join(self.build, "bin", "green_pair")
        return super().missing() or (None if os.path.exists(runner) else "green_pair is not built")

    def commands(self, jobs, barriers, split):
        """One process for all, therefore only for programs that are built as shared objects too."""
        words = [
            os.path.join(self.build, "bin", "green_pair"),
            "--shares",
            ",".join(map(str, split or [100] * len(jobs))),
        ]
        for job, barrier in zip(jobs, barriers):
            shared_object = os.path.join(self.build, "bin", "green", job.program.name + ".so")
            words += ["--"] + job.program.words(shared_object, job.reps, warm_of(job), barrier)
        # As many hardware queues as there may be, lest one program waits for the other's.
        environment = dict(self.environment(0, split), CUDA_DEVICE_MAX_CONNECTIONS="32")
        return [Command(words, environment, list(range(len(jobs))), barriers[0] is not None)]


class SlateConfiguration(Configuration):
    """The same binaries, started by `slatectl run`."""

    def __init__(self, name, setting):
        super().__init__(name, setting)
        self.settings = 'policy = "%s"\n%s' % (name.removeprefix("slate-"), setting.slated_settings)
        self.traces = setting.traces
        self.cache = None
        self.daemon = None
        self.found = None

    def missing(self):
        slated = os.path.join(self.build, "bin", "slated")
        return None if os.path.exists(slated) else "%s is not built" % slated

    def start(self):
        if self.daemon is None:
            daemon = contextlib.ExitStack()
            self.found = daemon.enter_context(private_slated(self.build, self.device, self.settings, self.cache))
            self.daemon = daemon

    def stop(self):
        if self.daemon is not None:
            self.daemon.close()
            self.daemon = None

    def run(self, jobs, limit_s, split=None, barrier=True):
        started = time.monotonic()
        outcomes = super().run(jobs, limit_s, split, barrier)
        if self.traces and len(jobs) > 1:
            self.keep_trace("+".join(job.program.name for job in jobs), started)
        return outcomes

    def keep_trace(self, name, started):
        """From `started` on, as FOLDER/NAME.CONFIGURATION.NUMBER.json; DaemonError if slated has none to give."""
        os.makedirs(self.traces, exist_ok=True)
        path = os.path.join(self.traces, "%s.%s.%03d.json" % (name, self.name, len(os.listdir(self.traces))))
        # slated counts back from when it is asked, which on a busy machine is a while after slatectl was started.
        seconds = time.monotonic() - started + TRACE_MARGIN_S
        done = self.slatectl("trace", "--out", path, "--last", "%g" % seconds)
        if done.returncode:
            raise DaemonError("slatectl trace: %s" % done.stderr.strip())
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        begin_us = started * 1e6 - trace["otherData"]["monotonic_us"]
        # Names of tracks have no time.
        trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("ts", math.inf) >= begin_us]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)

    def slatectl(self, *words):
        return subprocess.run(
            [os.path.join(self.build, "bin", "slatectl"), *words],
            env=self.environment(0, None),
            capture_output=True,
            text=True,
        )

    def prefix(self):
        return [os.path.join(self.build, "bin", "slatectl"), "run", "--"]

    def environment(self, index, split):
        return dict(
            plain_environment(0),
            **{key: self.found[key] for key in ("SLATE_RUNTIME_DIR", "SLATE_CACHE_DIR", "SLATE_STATE_DIR")}
        )

    def profile(self):
        if self.daemon is None:
            return []
        done = self.slatectl("profile", "--json")
        return json.loads(done.stdout)["kernels"] if done.returncode == 0 else []


def make_configurations(names, setting):
    """[Configuration] in that order, and [(name, why)] of those that this machine lacks."""
    shared_mps = SharedMps(setting.machine.index or 0)
    made, lacking = [], []
    for name in dict.fromkeys(names):
        if name.startswith("slate-"):
            configuration = SlateConfiguration(name, setting)
        elif name.startswith("mps"):
            configuration = MpsConfiguration(name, setting, shared_mps)
        elif name == "green":
            configuration = GreenConfiguration(name, setting)
        else:
            configuration = Configuration(name, setting)
        why = configuration.missing()
        if why:
            lacking.append((name, why))
        else:
            made.append(configuration)
    return made, lacking


def can_run(configuration, program):
    """Whether the configuration has a place for the program: own ones are no shared objects."""
    return program.reports or configuration.name != "green"
