"""Sessions that leave engines which live. Eight programs that check every word run while the engines are renewed, and while
another slated takes over: prints their longest pauses. Then one program with much memory is suspended and resumed: prints
the times. `resume` is measured until an engine serves the session, with its memory on the device, as the status says. What
the program does then is its own matter: it may compare gigabytes before its next launch. Exit status 1: a wrong word or a
failed call.

    python3 bench/moving.py --build build/release --device cuda --out moving.csv
"""

import atexit
import csv
import statistics
import subprocess
import sys
import time

from harness_options import make_parser, parse

parser = make_parser(__doc__)
parser.add_argument("--device", default="cuda")
parser.add_argument("--programs", type=int, default=8)
parser.add_argument("--rounds", type=int, default=5, help="renewals and upgrades")
parser.add_argument("--megabytes", type=int, default=64, help="of each of a program's three arrays")
parser.add_argument("--suspended", type=int, default=2048, help="megabytes of each array of the program that is suspended")
parser.add_argument("--slated", default="", help="further options of slated")
parser.add_argument("--out", help="CSV: action, round, milliseconds of the action, longest pause in milliseconds")
arguments = parse(parser)

from harness import Daemon, binary  # noqa: E402
from victims import Victim, is_served, wait_until_running  # noqa: E402

SHORTEST = 5  # ms, of a pause that counts
QUIET = 1.0  # s between two actions


def slatectl(daemon, *words):
    begin = time.monotonic()
    done = subprocess.run([binary("slatectl"), *words], env=daemon.environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("slatectl %s: %s%s" % (" ".join(words), done.stderr, daemon.log_text()[-3000:]))
    return begin, 1000 * (time.monotonic() - begin)


def is_right(victim):
    if not victim.is_right():
        print("a program failed: " + victim.said)
        return False
    return True


rows, right = [], True
daemon = Daemon(device=arguments.device, extra=arguments.slated.split())
atexit.register(daemon.discard)
victims = [Victim(daemon, 8 + 2 * arguments.rounds * (QUIET + 3), arguments.megabytes, SHORTEST) for _ in range(arguments.programs)]
wait_until_running(daemon, arguments.programs)
for action in "renew", "upgrade":
    for turn in range(arguments.rounds):
        if not all(victim.runs() for victim in victims):
            sys.exit("programs ended too early")
        begin, took = slatectl(daemon, action)
        time.sleep(QUIET)
        rows.append((action, turn, took, max(victim.longest_since(begin) for victim in victims)))
for victim in victims:
    right = is_right(victim) and right
daemon.wait_until_idle()
restarts = daemon.status()["engine"]["restarts"]

large = Victim(daemon, 60, arguments.suspended, SHORTEST)  # longer than all of this takes
wait_until_running(daemon, 1)
session = str(daemon.status()["sessions"][0]["id"])
for turn in range(3):
    _, took = slatectl(daemon, "suspend", session)
    free = daemon.status()["device"]["memory_free"]
    rows.append(("suspend", turn, took, 0.0))
    begin, _ = slatectl(daemon, "resume", session)
    daemon.wait_for(lambda: is_served(daemon.status()["sessions"][0]), 60, "it does not go on")
    rows.append(("resume", turn, 1000 * (time.monotonic() - begin), 0.0))
    time.sleep(QUIET)
print("memory free with %d MiB suspended: %d MiB" % (3 * arguments.suspended, free >> 20))
right = is_right(large) and right
daemon.stop()

print("%-8s %6s %28s %28s" % ("action", "times", "ms, median and most", "longest pause, same"))
for action in "renew", "upgrade", "suspend", "resume":
    took = [row[2] for row in rows if row[0] == action]
    pauses = [row[3] for row in rows if row[0] == action]
    print("%-8s %6d %14.0f %13.0f %14.0f %13.0f" %
          (action, len(took), statistics.median(took), max(took), statistics.median(pauses), max(pauses)))
print("engines that died: %d; every word %s" % (restarts, "right" if right else "WRONG"))
if arguments.out:
    with open(arguments.out, "w", newline="") as file:
        csv.writer(file).writerows([("action", "round", "ms", "longest_pause_ms"), *((a, t, "%.1f" % m, "%.1f" % p) for a, t, m, p in rows)])
sys.exit(not right or restarts != 0)
