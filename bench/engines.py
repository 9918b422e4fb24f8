"""What it costs that two users' programs have an engine each. Pairs of programs run at once: in one engine, in an engine of each
user, in such engines that are clients of one MPS server, and without slate by time slices and under MPS. Their launches begin
together. Prints, for each pair and way, the time of both one after the other over the time at once: 1.00 is no gain. A way that
does not work is said. `shares`: the time of each program's launches alone, over their time beside the other. Needs root, to be
two users. MPS numbers GPUs anew, so CUDA_VISIBLE_DEVICES may name the first one only.

    SLATE_TEST_DEVICE=cuda python3 bench/engines.py --build build/release [--json rows.jsonl] [PROGRAM+PROGRAM...]
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

from harness_options import make_parser, parse

parser = make_parser(__doc__)
parser.add_argument("--seconds", type=float, default=1, help="of each program's kernels, alone")
parser.add_argument("--rounds", type=int, default=2, help="of each pair in each way; the fastest counts")
parser.add_argument("--ways", nargs="*", help="only these")
parser.add_argument("--json", help="file for the rows")
parser.add_argument("pairs", nargs="*", default=["black_scholes+sgemm", "stream_read+nbody", "sgemm+nbody"], metavar="PAIR")
arguments = parse(parser)

from harness import ON_GPU, Daemon, binary, programs  # noqa: E402
from slate_bench.daemons import Mps, without_mps  # noqa: E402

USERS = (65531, 65532)


@contextlib.contextmanager
def slated(sharing, environment=None):
    """How a program is started under it, and its environment."""
    before = dict(os.environ)
    os.environ.update(environment or {})
    daemon = None
    try:
        daemon = Daemon(extra=("--fence", "never", "--sharing", sharing))
        os.chmod(daemon.root, 0o755)
        yield "slate", daemon.environment
    finally:
        if daemon:
            daemon.stop()
        os.environ.clear()
        os.environ.update(before)


# An MPS server has the clients of one user only: slated's engines, or programs that are not slate's. With slated's 32 ways into the
# hardware a second engine does not start there.
@contextlib.contextmanager
def engines_under_mps():
    with Mps() as environment, slated("user", {**environment, "CUDA_DEVICE_MAX_CONNECTIONS": "8"}) as way:
        yield way


@contextlib.contextmanager
def natively_under_mps():
    with Mps() as environment:
        yield "native", environment


@contextlib.contextmanager
def natively():
    yield "native", without_mps(os.environ)


WAYS = {
    "one engine": lambda: slated("trusted"),
    "own engines": lambda: slated("user"),
    "own engines under MPS": engines_under_mps,
    "time slices": natively,
    "MPS": natively_under_mps,
}


class Run:
    """A program, which waits for `go` in front of its launches."""

    def __init__(self, way, name, reps, user, go):
        kind, environment = way
        command = [binary("slate" if kind == "slate" else "shared", name), "--json", "--no-check", "--reps", str(reps),
                   "--size", str(programs()[name][1 if ON_GPU else 0]), "--barrier", go]
        keywords = {"user": user, "group": user, "extra_groups": []} if kind == "slate" else {}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd="/", **keywords)
        self.ready = "%s.%d" % (go, self.process.pid)

    def is_waiting(self):
        """Whether it is ready, or has ended."""
        return os.path.exists(self.ready) or self.process.poll() is not None

    def finish(self):
        """Its report."""
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode != 0:
            raise RuntimeError(err.strip()[-300:] or "exit status %d" % self.process.returncode)
        return json.loads(out)


def run(way, names, reps, users):
    """The programs' reports, whose launches begin together."""
    with tempfile.TemporaryDirectory(prefix="slate-engines-") as folder:
        os.chmod(folder, 0o777)
        go = os.path.join(folder, "go")
        runs = [Run(way, *each, go) for each in zip(names, reps, users)]
        while not all(each.is_waiting() for each in runs):
            time.sleep(0.01)
        with open(go, "w"):
            pass
        return [each.finish() for each in runs]


def reps_of(way, names):
    """So many launches take --seconds."""
    first = [run(way, [name], [reps], [user])[0]["kernel_ms"] for name, user in zip(names, USERS) for reps in (2, 5)]
    return [max(1, round(1000 * arguments.seconds / ms)) for ms in first[1::2]]


def measure(way, names):
    reps = reps_of(way, names)
    alone = [run(way, [name], [count], [user])[0]["loop_ms"] for name, count, user in zip(names, reps, USERS)]
    rounds = [[report["loop_ms"] for report in run(way, names, reps, USERS)] for _ in range(arguments.rounds)]
    best = min(rounds, key=max)
    return {"gain": sum(alone) / max(best), "shares": [one / both for one, both in zip(alone, best)], "seconds": max(best) / 1000}


def note(row):
    """Keeps the row at once, as the next one may never come."""
    if arguments.json:
        with open(arguments.json, "a") as file:
            file.write(json.dumps(row) + "\n")


def main():
    for kind in arguments.ways or WAYS:
        try:
            with WAYS[kind]() as way:
                for pair in arguments.pairs:
                    row = {"way": kind, "pair": pair, **measure(way, pair.split("+"))}
                    note(row)
                    print("%-22s %-22s gain %.2f  shares %.2f %.2f" % (kind, pair, row["gain"], *row["shares"]), flush=True)
        except Exception as error:  # another way may work
            print("%-22s does not work: %s" % (kind, str(error)[-600:]), flush=True)
            note({"way": kind, "error": str(error)[-2000:]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
