"""How long after a kernel fault the next program has its right result: a program that writes to address 0x10, then at
once a small vector_add, several times, with and without a spare engine. Prints medians in milliseconds.

    python3 bench/recovery.py --build build/release --device cuda --rounds 5
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from slate_bench.daemons import private_slated

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", default="build/release")
parser.add_argument("--device", default="cuda")
parser.add_argument("--rounds", type=int, default=5)
arguments = parser.parse_args()


def binary(*parts):
    return os.path.join(arguments.build, "bin", *parts)


def timed(command, environment):
    started = time.perf_counter()
    code = subprocess.run(command, env=environment, capture_output=True).returncode
    if code != 0:
        sys.exit("%s ended with %d" % (command, code))
    return 1000 * (time.perf_counter() - started)


def measure(spare):
    small = [binary("slate", "vector_add"), "--size", "1000"]
    undisturbed, fault, after = [], [], []
    with private_slated(arguments.build, arguments.device, "spare_engine = \"%s\"\n" % ("always" if spare else "never")) as environment:
        timed(small, environment)
        for _ in range(arguments.rounds):
            time.sleep(1)  # lets a spare engine get ready
            undisturbed.append(timed(small, environment))
            fault.append(timed([binary("slate", "wild_write")], environment))
            after.append(timed(small, environment))
    print("spare engine %-3s  undisturbed %.0f ms  faulting program %.0f ms  next program %.0f ms" % (
        "yes" if spare else "no", *(statistics.median(times) for times in (undisturbed, fault, after))))


for spare in (False, True):
    measure(spare)
