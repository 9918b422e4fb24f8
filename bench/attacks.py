"""The neighbour's speed beside each attack of tests/e2e/hostile.py, as a ratio to its speed before and after the attack in
the same run. Needs root, to be three users. Prints one row an attack:
- launches a second of a program that runs all the while, each launch with its end; all results are checked, which does not count,
- the time of a program from its start to its checked result (vector_add of the size that sim has).
1.00 is undisturbed. A launch ratio of 0.90 means that the neighbour has lost a tenth.

    SLATE_TEST_DEVICE=cuda python3 bench/attacks.py --build build/release --seconds 10 [ATTACK...]
"""

import json
import os
import statistics
import subprocess
import sys
import time

from harness_options import make_parser, parse

parser = make_parser(__doc__)
parser.add_argument("--seconds", type=float, default=10, help="of each measurement: before, beside and after the attack")
parser.add_argument("--json", help="file for the figures")
parser.add_argument("attacks", nargs="*", metavar="ATTACK")
arguments = parse(parser)

import neighbour  # noqa: E402
from harness import DEVICE, Daemon, small_command  # noqa: E402
from hostile import ATTACKS, begin_attack, end_attack  # noqa: E402

NEIGHBOUR = 65532  # a user
INTERVAL = 0.5  # s, of one report of the neighbour


class Watched:
    """The neighbour's process, whose reports of the last seconds can be asked for."""

    def __init__(self, daemon):
        reader, writer = os.pipe()
        self.pid = neighbour.fork_as(NEIGHBOUR, daemon.environment, neighbour.report_for_ever, writer, INTERVAL)
        os.close(writer)
        self.said = os.fdopen(reader)

    def report(self):
        line = self.said.readline()
        if not line:
            sys.exit("the neighbour ended")
        got = json.loads(line)
        if got["wrong"]:
            sys.exit("the neighbour has %d wrong words" % got["wrong"])
        return got

    def launches_per_second(self, seconds):
        """The median over intervals; those that began before the call do not count."""
        began, rates = time.time(), []
        while len(rates) < seconds / INTERVAL:
            got = self.report()
            if got["began"] >= began:
                rates.append(got["launches"] / got["launching_s"])
        return statistics.median(rates)

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def start_to_result(daemon, seconds):
    """The median time of whole programs, in seconds."""
    command = small_command("vector_add")
    times, ends = [], time.time() + seconds
    while time.time() < ends or not times:
        began = time.perf_counter()
        done = subprocess.run(command, env=daemon.environment, user=NEIGHBOUR, group=NEIGHBOUR, extra_groups=[],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("the neighbour's program failed: " + done.stderr)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def speeds(daemon, watched):
    return watched.launches_per_second(arguments.seconds), start_to_result(daemon, arguments.seconds / 2)


def measure(name):
    """Launches a second and seconds of a program: undisturbed (the mean of before and after), and beside the attack."""
    daemon = Daemon()
    os.chmod(daemon.root, 0o755)
    try:
        watched = Watched(daemon)
        watched.report()  # the first one has the loading of its module
        before = speeds(daemon, watched)
        pid, said = begin_attack(daemon, name)
        if said != "ready\n":
            sys.exit("the attack %s did not begin" % name)
        beside = speeds(daemon, watched)
        end_attack(pid)
        after = speeds(daemon, watched)
        watched.end()
    finally:
        daemon.discard()
    undisturbed = [statistics.mean(pair) for pair in zip(before, after)]
    return {"attack": name, "launches_per_s": undisturbed[0], "launches_per_s_beside": beside[0],
            "program_s": undisturbed[1], "program_s_beside": beside[1]}


if os.geteuid() != 0:
    sys.exit("bench/attacks.py needs root, to be three users")
print("device %s" % DEVICE)
print("%-16s %12s %12s %7s %12s %12s %7s" % ("attack", "launches/s", "beside it", "ratio", "program ms", "beside it", "ratio"))
rows = []
for attack in arguments.attacks or ATTACKS:
    row = measure(attack)
    rows.append(row)
    print("%-16s %12.0f %12.0f %7.2f %12.1f %12.1f %7.2f" % (
        attack, row["launches_per_s"], row["launches_per_s_beside"], row["launches_per_s_beside"] / row["launches_per_s"],
        1000 * row["program_s"], 1000 * row["program_s_beside"], row["program_s_beside"] / row["program_s"]), flush=True)
if arguments.json:
    with open(arguments.json, "w") as file:
        json.dump({"device": DEVICE, "rows": rows}, file, indent=1)
