"""The cost of the fence: the time of each program's launches behind it, as a ratio to their time without. Both are run in turn,
by two slated beside each other, so that nothing but the fence differs. Prints one row a program, then mean and worst.
- first: milliseconds that its first run takes longer behind the fence, from start to end, as its kernels are compiled for it.
1.00 is no cost. With `--form native` no run counts in which the engine tries other forms: some 20 launches of one of the first.

    SLATE_TEST_DEVICE=cuda python3 bench/fence.py --build build/release --rounds 5 [PROGRAM...]
"""

import json
import statistics
import sys
import time

from harness_options import make_parser, parse

parser = make_parser(__doc__)
parser.add_argument("--rounds", type=int, default=5, help="runs of each program in each way, whose median counts")
parser.add_argument("--reps", type=int, default=20, help="launches of each run, whose median counts")
parser.add_argument("--form", default="auto")
parser.add_argument("--json", help="file for the figures, a row a program")
parser.add_argument("programs", nargs="*", metavar="PROGRAM")
arguments = parse(parser)

from harness import Daemon, program_command, programs  # noqa: E402


def run(daemon, name):
    """Milliseconds of the median launch, of the whole run, and the hash of the result."""
    began = time.time()
    code, out, err = daemon.run(program_command(name, extra=("--reps", str(arguments.reps), "--no-check")))
    if code != 0:
        sys.exit("%s: %s%s" % (name, out, err))
    said = json.loads(out)
    return said["kernel_ms"], 1000 * (time.time() - began), said["hash"]


def main():
    ways = {way: Daemon(extra=("--fence", way, "--form", arguments.form)) for way in ("never", "always")}
    rows = []
    print("%-20s %10s %10s %6s %8s" % ("program", "ms", "fenced ms", "ratio", "first"))
    for name in arguments.programs or programs():
        first = {way: run(daemon, name) for way, daemon in ways.items()}
        times = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way, daemon in ways.items():
                times[way].append(run(daemon, name)[0])
        without, behind = (statistics.median(times[way]) for way in ways)
        row = {"program": name, "ms": without, "fenced_ms": behind, "ratio": behind / without,
               "first_ms": first["always"][1] - first["never"][1], "same_bits": first["always"][2] == first["never"][2]}
        rows.append(row)
        print("%-20s %10.4f %10.4f %6.3f %8.0f%s" % (name, without, behind, row["ratio"], row["first_ms"],
                                                   "" if row["same_bits"] else "  OTHER BITS"), flush=True)
    ratios = [row["ratio"] for row in rows]
    print("mean %.3f, worst %.3f, of %d programs" % (statistics.mean(ratios), max(ratios), len(rows)))
    print("fence: %s" % ways["always"].status()["fence"])
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    for daemon in ways.values():
        daemon.stop()
    return 0 if all(row["same_bits"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
