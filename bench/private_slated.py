"""A slated of a benchmark's own, in a private runtime directory, stopped and removed afterwards."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time


@contextlib.contextmanager
def private_slated(build, device, settings="", cache=None):
    """Yields the environment in which programs find it, once it serves, with its process id in SLATE_BENCH_PID.
    `settings` is TOML. `cache` is a directory for compiled code that outlives this slated, for warm starts; without it
    everything is compiled anew."""
    with tempfile.TemporaryDirectory(prefix="slate-bench-") as root:
        environment = dict(os.environ, SLATE_RUNTIME_DIR=os.path.join(root, "run"),
                           SLATE_CACHE_DIR=os.path.abspath(cache or os.path.join(root, "cache")),
                           SLATE_STATE_DIR=os.path.join(root, "state"))
        config = os.path.join(root, "slated.toml")
        with open(config, "w") as file:
            file.write(settings)
        daemon = subprocess.Popen([os.path.join(build, "bin", "slated"), "--config", config, "--device", device,
                                   "--runtime-dir", environment["SLATE_RUNTIME_DIR"], "--log-level", "error"],
                                  env=environment)
        environment["SLATE_BENCH_PID"] = str(daemon.pid)
        try:
            status = [os.path.join(build, "bin", "slatectl"), "status"]
            while subprocess.run(status, env=environment, capture_output=True).returncode:
                if daemon.poll() is not None:
                    sys.exit("slated ended with %d" % daemon.returncode)
                time.sleep(0.05)
            yield environment
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(timeout=60)
