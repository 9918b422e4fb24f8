"""sweep: kernels of the programs in the worker form, by blocks a task, by SMs, and by workers on each SM (Figures 1 and
5 of the Slate paper). form_bench does it in one process, round by round, natively beside it."""

import json
import os
import subprocess
import tempfile
import time

from .daemons import tail
from .programs import UsageError
from .runner import RunFailed

HELP = "kernels by task size, SMs, and workers an SM"
WHATS = ("task_size", "sms", "workers_per_sm")


def add_options(parser):
    parser.add_argument("--what", default=",".join(WHATS), help="which of them, with commas (%(default)s)")
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="kernels by form_bench's names; all by default")


def form_bench(session, whats, kernels):
    """Its rows as they come. RunFailed when it fails, OutOfTime when time is up; nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="slate-bench-") as root:
        out, log = os.path.join(root, "rows"), os.path.join(root, "log")
        device = "cuda:%d" % session.machine.index if session.machine.on_gpu else session.device
        command = [
            os.path.join(session.build, "bin", "form_bench"),
            "--device",
            device,
            "--programs",
            os.path.join(session.build, "bin", "shared"),
            "--rounds",
            str(session.rounds),
            "--sweep",
            ",".join(whats),
            "--json",
            out,
            *([] if session.machine.on_gpu else ["--small"]),
            *kernels,
        ]
        with open(log, "w") as errors:
            process = subprocess.Popen(command, stdout=errors, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            while not os.path.exists(out) and process.poll() is None:
                time.sleep(0.05)
            yield from follow(session, process, out)
            if process.wait():
                raise RunFailed("form_bench ended with %d: %s" % (process.returncode, tail(log)))
        finally:
            process.kill()
            process.wait()


def follow(session, process, path):
    """The file's rows, until the process that writes them has ended."""
    if not os.path.exists(path):
        return
    with open(path) as lines:
        while True:
            ended = process.poll() is not None
            line = lines.readline()
            if line.endswith("\n"):
                yield json.loads(line)
            elif ended:
                return
            else:
                lines.seek(lines.tell() - len(line))
                session.check_time()
                time.sleep(0.05)


def run(session, arguments):
    whats = arguments.what.split(",")
    if not set(whats) <= set(WHATS):
        raise UsageError("--what %s: of %s" % (arguments.what, ", ".join(WHATS)))
    if not os.path.exists(os.path.join(session.build, "bin", "form_bench")):
        raise UsageError("form_bench is not built in %s" % session.build)
    session.left = "the rest of the sweep"
    try:
        for row in form_bench(session, whats, arguments.programs or []):
            session.writer.write("sweep", **row)
    except RunFailed as error:
        session.failures += 1
        session.say(str(error))
        session.writer.write(
            "failure", configuration="form_bench", programs=arguments.programs or [], split=None, message=str(error)
        )
