"""A program that checks every word beside one that faults about once a second, in turn in each way that there is. Prints
the pauses of the first by the fault before they began, and how often the second got its own error. Exit status 1: a wrong
word, a failed call of the victim, or another error than the real runtime's.

The victim and the offender are two users, which needs root. `--machine-code FILE` is the offender as an unchanged program
without PTX: behind its faults no fence can stand. On sim, ask for `fault=device`.

    python3 bench/faults.py --build build/release --device cuda --minutes 10 --out faults.csv
    python3 bench/faults.py --build build/release --device cuda --minutes 5 --slated "--fence never" --out faults.csv
"""

import collections
import csv
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time

from harness_options import make_parser, parse

parser = make_parser(__doc__)
parser.add_argument("--device", default="cuda")
parser.add_argument("--minutes", type=float, default=10)
parser.add_argument("--interval", type=float, default=1, help="seconds between the beginnings of two faults")
parser.add_argument("--megabytes", type=int, default=4, help="of each of the victim's three arrays")
parser.add_argument("--slated", default="", help="further options of slated")
parser.add_argument("--machine-code", help="the offender, compiled to machine code alone")
parser.add_argument("--ways", default="wild,trap,misaligned,illegal,assert,stack,freed,spinning,kill")
parser.add_argument("--out", help="CSV, a row a fault, appended")
arguments = parse(parser)
ON_GPU = arguments.device.startswith("cuda")

from harness import Daemon, binary  # noqa: E402
from victims import ALL_FAULTS, Victim, wait_until_running  # noqa: E402

VICTIM, OFFENDER = ({"user": user, "group": user, "extra_groups": []} for user in (65532, 65531))
SHORTEST = 20  # ms, of a pause that counts


def own_error(name):
    if not ON_GPU:
        return ALL_FAULTS[name]
    return subprocess.run([binary("static", "offender"), name], capture_output=True, text=True).stdout.strip().split(": ")[-1]


def make_ways():
    """(name, command or None for a kill, error) of each fault."""
    for name in arguments.ways.split(","):
        if name == "kill":
            yield "SIGKILL of the engine", None, None
            continue
        expected = own_error(name)
        yield name, [binary("slate", "offender"), name], expected
        if arguments.machine_code:
            yield name + ", machine code", [binary("slatectl"), "run", "--", arguments.machine_code, name], expected


def fault(daemon, command):
    """What the offender says, or that an engine was killed."""
    if command is None:
        try:
            os.kill(daemon.engine_pid(), signal.SIGKILL)
        except (AssertionError, ProcessLookupError):
            return "no engine to kill"
        return None
    process = daemon.start(command, **OFFENDER)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        return "hangs: " + process.communicate()[1][-200:]
    said = out.strip().split("\n")[-1].split(": ")[-1]
    return said if said.startswith("cudaError") else "said '%s', '%s'" % (said, err.strip()[-200:])


def main():
    ways = list(make_ways())
    # Nobody is barred for his faults.
    daemon = Daemon(device=arguments.device, extra=["--spare-engine", "always", "--bar-after", "0", *shlex.split(arguments.slated)])
    os.chmod(daemon.root, 0o755)
    seconds = arguments.minutes * 60
    victim = Victim(daemon, seconds, arguments.megabytes, SHORTEST, **VICTIM)
    wait_until_running(daemon, 1)
    engine, ends = daemon.engine_pid(), time.monotonic() + seconds - 6
    faults = []  # (way, begin, end, what it got, whether it is right)
    while time.monotonic() < ends and victim.runs():
        for way, command, expected in ways:
            begin = time.monotonic()
            got = fault(daemon, command)
            faults.append((way, begin, time.monotonic(), got, got == expected))
            time.sleep(max(0, begin + arguments.interval - time.monotonic()))
    is_right = victim.is_right()
    print("victim: exit status %d, %s" % (victim.process.returncode, victim.said.strip()))
    restarts = daemon.status()["engine"]["restarts"]
    daemon.stop()

    rows = collections.defaultdict(list)
    for i, (way, begin, end, got, right) in enumerate(faults):
        until = faults[i + 1][1] if i + 1 < len(faults) else float("inf")
        longest = max((length for at, length in victim.pauses if begin <= at - length / 1e3 < until), default=0)
        rows[way].append((longest, got, right, end - begin))
        if not right:
            print("%s: %s" % (way, got))
    print("%d faults in %.0f s, %d engines replaced%s" % (len(faults), seconds, restarts, "" if restarts else ", still %d" % engine))
    print("| fault | times | own error | longest pause | median pause | the offender took |\n|---|---|---|---|---|---|")
    for way, found in rows.items():
        pauses = [each[0] for each in found]
        print("| %s | %d | %d | %s | %s | %.0f ms |" % (way, len(found), sum(each[2] for each in found), shown(max(pauses)),
              shown(statistics.median(pauses)), 1e3 * statistics.median(each[3] for each in found)))
    if arguments.out:
        with open(arguments.out, "a", newline="") as file:
            writer = csv.writer(file)
            for way, begin, end, got, right in faults:
                writer.writerow([arguments.slated or "default", way, "%.3f" % (begin - faults[0][1]), "%.3f" % (end - begin), got, int(right)])
    return 0 if is_right and all(each[4] for each in faults) else 1


def shown(milliseconds):
    return "below %d ms" % SHORTEST if milliseconds == 0 else "%.0f ms" % milliseconds


sys.exit(main())
