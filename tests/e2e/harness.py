"""A slated of one's own for a test: started in a private runtime directory, stopped and checked for leftovers.

The build folder is $SLATE_BUILD, the device $SLATE_TEST_DEVICE (default: a small sim). Every slated gets the options of
$SLATE_TEST_ARGUMENTS, such as "--fence always". A test case derives
from SlateTestCase; `native(program)` runs a program on the real runtime where there is a GPU.
"""

import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = os.environ.get("SLATE_BUILD", os.path.join(os.path.dirname(__file__), "../../build/release"))
DEVICE = os.environ.get("SLATE_TEST_DEVICE", "sim:sms=8,memory=1G")
ON_GPU = DEVICE.startswith("cuda")
SLOW = float(os.environ.get("SLATE_TEST_SLOWDOWN", "1"))  # sanitizers stretch every limit
PROGRAM_FILE = os.path.join(os.path.dirname(__file__), "../../kernels/programs.txt")


def binary(*parts):
    return os.path.join(BUILD, "bin", *parts)


def programs():
    """{name: (size on sim, size on a GPU, hash of the result at the first size)}."""
    with open(PROGRAM_FILE) as lines:
        rows = [line.split() for line in lines if line[0].isalpha()]
    return {name: (int(sim), int(gpu), expected) for name, sim, gpu, expected in rows}


def expected_output(name):
    """What a program of tests/programs has to print."""
    with open(os.path.join(os.path.dirname(__file__), "../programs/%s.expected" % name)) as file:
        return file.read()


def children(pid):
    """Pids of the direct children of a process."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.split("/")[2]))
    return found


def processor_seconds(pids):
    """What the processes have used so far."""
    seconds = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def can_run(user, path):
    """Whether another user reaches a program of the build folder. Needs root."""
    return subprocess.run(["test", "-x", os.path.abspath(path)], user=user, group=user, extra_groups=[]).returncode == 0


class Footprint:
    """What a process has now: resident memory in bytes, descriptors, threads."""

    def __init__(self, pid):
        with open("/proc/%d/status" % pid) as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        self.memory = int(fields["VmRSS"].split()[0]) << 10
        self.threads = int(fields["Threads"])
        self.descriptors = len(os.listdir("/proc/%d/fd" % pid))

    def __str__(self):
        return "%.1f MiB, %d descriptors, %d threads" % (self.memory / 2**20, self.descriptors, self.threads)


class Daemon:
    def __init__(self, device=DEVICE, extra=(), program=None):
        self.root = tempfile.mkdtemp(prefix="slate-e2e-")
        self.runtime = os.path.join(self.root, "run")
        # Programs and slated see no cache but this one.
        self.environment = dict(
            os.environ, SLATE_RUNTIME_DIR=self.runtime, SLATE_CACHE_DIR=os.path.join(self.root, "cache"),
            SLATE_STATE_DIR=os.path.join(self.root, "state")
        )
        self.log_path = os.path.join(self.root, "log")
        self.log = open(self.log_path, "w")
        self.command = [
            program or binary("slated"), "--device", device, "--runtime-dir", self.runtime, "--log-level", "info",
            *os.environ.get("SLATE_TEST_ARGUMENTS", "").split(), *extra
        ]
        self.launch()

    def launch(self):
        self.process = subprocess.Popen(self.command, stderr=self.log, env=self.environment)
        self.wait_for(lambda: self.status_or_none() is not None, 60, "slated does not serve")

    def log_text(self):
        with open(self.log_path) as file:
            return file.read()

    def wait_for(self, condition, seconds, complaint):
        deadline = time.time() + seconds * SLOW
        while time.time() < deadline:
            if condition():
                return
            if self.process.poll() is not None:
                raise AssertionError("slated ended with %d:\n%s" % (self.process.returncode, self.log_text()))
            time.sleep(0.02)
        raise AssertionError("%s:\n%s" % (complaint, self.log_text()))

    def status_or_none(self):
        reply = subprocess.run(
            [binary("slatectl"), "status", "--json"], env=self.environment, capture_output=True, text=True
        )
        if reply.returncode != 0:
            return None
        state = json.loads(reply.stdout)
        return state if state.get("device", {}).get("name") else None

    def status(self):
        state = self.status_or_none()
        assert state is not None, self.log_text()
        return state

    def fence(self):
        """What the engine says of the fence. A busy engine leaves it out of a status."""
        found = {}

        def is_told():
            found.update(self.status().get("fence") or {})
            return found

        self.wait_for(is_told, 10, "the engine says nothing of the fence")
        return found

    def engine_pid(self):
        return self.status()["engine"]["pid"]

    def start(self, command, **keywords):
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords
        )

    def run(self, command, timeout=120):
        process = self.start(command)
        try:
            out, err = process.communicate(timeout=timeout * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError("%s hangs; slated said:\n%s" % (command, self.log_text()))
        return process.returncode, out, err

    def wait_until_idle(self):
        self.wait_for(lambda: not self.status()["sessions"], 10, "sessions do not end")

    def names_left(self):
        """What a session has left in the runtime directory: it has to be nothing."""
        return sorted(set(os.listdir(self.runtime)) - {"slated.sock", "slated.lock"})

    def stop(self):
        """SIGTERM, then the promise: exit 0, no process, no file."""
        pids = children(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30 * SLOW)
        self.log.close()
        assert code == 0, "slated ended with %d:\n%s" % (code, self.log_text())
        assert not os.path.exists(self.runtime), os.listdir(self.runtime)
        for pid in pids:
            assert not os.path.exists("/proc/%d" % pid), "process %d outlived slated" % pid
        self.discard()

    def restart(self):
        """Ends it and starts another one with the same directories."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30 * SLOW) == 0, self.log_text()
        self.launch()

    def discard(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if not self.log.closed:
            self.log.close()
        shutil.rmtree(self.root, ignore_errors=True)


class SlateTestCase(unittest.TestCase):
    def daemon(self, **keywords):
        daemon = Daemon(**keywords)
        self.addCleanup(daemon.discard)
        return daemon

    def assert_leaves_nothing(self, daemon, action):
        """Of the device's memory, when `action` is over. The engine and its driver keep some once for all, when it is
        first needed, which may be late: kernels take other forms in later runs. What a client leaves is lost each time."""
        free = []
        while len(free) < 2 or free[-1] != free[-2]:
            self.assertLess(len(free), 6, "each time something is lost: %s" % free)
            action()
            free.append(daemon.status()["device"]["memory_free"])


def program_command(name, how="slate", json_report=True, extra=(), size_on_sim=None):
    """A program as a command line: `how` is slate (linked with -lslate), run (slatectl run of the one
    linked to the shared runtime), static (slatectl run of the one with the runtime inside) or native."""
    sim_size, gpu_size, _ = programs()[name]
    size = gpu_size if ON_GPU else size_on_sim or sim_size
    command = {
        "slate": [binary("slate", name)],
        "run": [binary("slatectl"), "run", "--", binary("shared", name)],
        "static": [binary("slatectl"), "run", "--", binary("static", name)],
        "native": [binary("shared", name)],
    }[how]
    return command + ["--size", str(size)] + (["--json"] if json_report else []) + list(extra)


def small_command(name):
    """A program linked with libslate, of the size that sim has, also on a GPU."""
    return [binary("slate", name), "--size", str(programs()[name][0]), "--json"]


def native(command):
    """Runs on the toolkit's own runtime."""
    reply = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return reply.returncode, reply.stdout, reply.stderr


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(
            file.read()
        ).hexdigest()
