"""A slated and an MPS of the benchmark's own, in private directories, stopped and removed afterwards."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time


QUIT_S = 20  # MPS may take so long to go


class DaemonError(Exception):
    """A daemon is not here, did not start, or died."""


def tail(path, count=400):
    try:
        with open(path, errors="replace") as file:
            return file.read()[-count:].strip()
    except OSError:
        return ""


def without_mps(environment):
    """Without what a caller said about MPS. Programs still look for one in the usual place."""
    return {key: value for key, value in environment.items() if not key.startswith("CUDA_MPS_")}


def with_driver_front(environment, build):
    """The environment of a program that finds slate's libcuda first."""
    path = os.path.join(build, "lib", "driver")
    return dict(environment, LD_LIBRARY_PATH=path + ":" + environment.get("LD_LIBRARY_PATH", ""))


@contextlib.contextmanager
def private_slated(build, device, settings="", cache=None):
    """Yields the environment in which programs find it, once it serves, with its process id in SLATE_BENCH_PID.
    `settings` is TOML. `cache` is a directory for compiled code that outlives this slated, for warm starts; without it
    everything is compiled anew."""
    with tempfile.TemporaryDirectory(prefix="slate-bench-") as root:
        no_mps = os.path.join(root, "no-mps")
        os.mkdir(no_mps)
        environment = dict(
            without_mps(os.environ),
            CUDA_MPS_PIPE_DIRECTORY=no_mps,
            SLATE_RUNTIME_DIR=os.path.join(root, "run"),
            SLATE_CACHE_DIR=os.path.abspath(cache or os.path.join(root, "cache")),
            SLATE_STATE_DIR=os.path.join(root, "state"),
        )
        config, log = os.path.join(root, "slated.toml"), os.path.join(root, "log")
        with open(config, "w") as file:
            file.write(settings)
        command = [
            os.path.join(build, "bin", "slated"),
            "--config",
            config,
            "--device",
            device,
            "--runtime-dir",
            environment["SLATE_RUNTIME_DIR"],
            "--log-level",
            "error",
        ]
        try:
            with open(log, "w") as errors:
                # A session of its own: an interrupt is for us, and we stop it in our time.
                daemon = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors, start_new_session=True)
        except OSError as error:
            raise DaemonError("slated: %s" % error) from error
        environment["SLATE_BENCH_PID"] = str(daemon.pid)
        try:
            wait_until_serving(build, environment, daemon, log)
            yield environment
        finally:
            stop_process(daemon)


def has_device(build, environment):
    """Whether its engine is there: slated answers before that, and lets programs wait."""
    status = [os.path.join(build, "bin", "slatectl"), "status", "--json"]
    reply = subprocess.run(status, env=environment, capture_output=True, text=True)
    return reply.returncode == 0 and bool(json.loads(reply.stdout).get("device", {}).get("name"))


def wait_until_serving(build, environment, daemon, log):
    while not has_device(build, environment):
        if daemon.poll() is not None:
            raise DaemonError("slated ended with %d: %s" % (daemon.returncode, tail(log)))
        time.sleep(0.05)


def stop_process(process, seconds=60):
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Mps:
    """NVIDIA's daemon. Programs that are started with `environment` are its clients. `with` yields that, and stops it."""

    TOOL = "nvidia-cuda-mps-control"

    def __init__(self, index=0):
        self.root = tempfile.TemporaryDirectory(prefix="slate-bench-mps-")
        self.pipes = os.path.join(self.root.name, "pipe")
        logs = os.path.join(self.root.name, "log")
        os.mkdir(self.pipes)
        os.mkdir(logs)
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.pipes, CUDA_MPS_LOG_DIRECTORY=logs)
        self.environment.pop("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", None)
        try:
            self.launch(index)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self.environment

    def __exit__(self, *_):
        self.stop()

    def launch(self, index):
        """The daemon goes to the background by itself, and leaves its id in the directory."""
        environment = dict(self.environment, CUDA_VISIBLE_DEVICES=str(index)) if index else self.environment
        said = os.path.join(self.root.name, "said")
        try:
            with open(said, "w") as file:  # and no pipe, which the daemon might keep open
                options = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, "timeout": 60}
                status = subprocess.run([self.TOOL, "-d"], env=environment, **options).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DaemonError("%s -d: %s" % (self.TOOL, error)) from error
        if status:
            raise DaemonError("%s -d: %s" % (self.TOOL, tail(said) or "ended with %d" % status))

    @classmethod
    def is_here(cls):
        return shutil.which(cls.TOOL) is not None

    def ask(self, command, seconds=60):
        """The daemon's answer to a line of its own language."""
        try:
            done = subprocess.run(
                [self.TOOL], input=command + "\n", env=self.environment, capture_output=True, text=True, timeout=seconds
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DaemonError("%s does not answer %r" % (self.TOOL, command)) from error
        return done.stdout.strip()

    def serves(self):
        """Whether a client has ever come: without one the daemon starts no server."""
        return bool(self.ask("get_server_list"))

    def client_count(self):
        """How many processes are its clients now; those that miss it run natively."""
        return sum(len(self.ask("get_client_list " + server).split()) for server in self.ask("get_server_list").split())

    def stop(self):
        if self.root is None:
            return
        pid = self.control_pid()
        try:
            self.ask("quit", 30)
        except DaemonError:
            pass
        deadline = time.monotonic() + QUIT_S
        while pid and alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if pid and alive(pid):
            os.kill(pid, signal.SIGKILL)
        self.root.cleanup()
        self.root = None

    def control_pid(self):
        try:
            with open(os.path.join(self.pipes, self.TOOL + ".pid")) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None


def alive(pid):
    """A zombie, which nobody may ever collect in a container, counts as dead."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
