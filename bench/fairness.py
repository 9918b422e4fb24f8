"""How the device is shared out: equal programs, and programs of unequal weight.

    python3 bench/fairness.py --build build/release [--policy adaptive --policy timeslice] --json fairness.jsonl

`equal`: --count copies of a program at once, the same work each; the spread is the last end over the first one.
`weights`: two copies, of which the second has three times the weight and three times the work; if shares are as the
weights both end at once. `error` is what the first lacks: the time of either end over the other.
"""

import argparse
import json
import os
import statistics

from pairs import PROGRAMS, TINY, Runner
from private_slated import private_slated


class Weighted(Runner):
    """Starts its jobs with weights, in turn."""
    weights = ()

    def start(self, name, reps, warm, barrier, environment, how):
        weight = self.weights[self.started % len(self.weights)] if self.weights else 1
        self.started += 1
        return super().start(name, reps, warm, barrier, dict(environment, SLATE_WEIGHT=str(weight)), how)

    def run(self, jobs, environment, how, weights=()):
        self.weights, self.started = weights, 0
        return super().run(jobs, environment, how)


def ends(reports):
    start = min(report["loop_started_ms"] for report in reports)
    return [report["loop_started_ms"] + report["loop_ms"] - start for report in reports]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--policy", action="append", help="of slated; several are possible")
    parser.add_argument("--programs", nargs="*", default=["black_scholes", "sgemm", "fma_loop", "stream_read"])
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each copy alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="file for the rows, appended to")
    arguments = parser.parse_args()
    real = arguments.device.startswith("cuda")
    runner = Weighted(arguments.build, PROGRAMS if real else TINY)
    rows = open(arguments.json, "a") if arguments.json else None

    def tell(row):
        print("%-9s %-14s %-8s %s" % (row["policy"], row["program"], row["what"],
                                      "  ".join("%.3f" % value for value in row["ratios"])), flush=True)
        if rows:
            rows.write(json.dumps(row) + "\n")
            rows.flush()

    for policy in arguments.policy or ["adaptive", "timeslice"]:
        with private_slated(arguments.build, arguments.device, 'policy = "%s"\n' % policy) as environment:
            for name in arguments.programs:
                reps = runner.reps_for(name, arguments.seconds, 20, environment, "slate") if real else 2
                equal, weighted = [], []
                for _ in range(arguments.rounds):
                    at = ends(runner.run([(name, reps)] * arguments.count, environment, "slate"))
                    equal.append(max(at) / min(at))
                    at = ends(runner.run([(name, reps), (name, 3 * reps)], environment, "slate", (1, 3)))
                    weighted.append(max(at) / min(at))
                tell({"policy": policy, "program": name, "what": "equal", "ratios": equal,
                      "median": statistics.median(equal), "count": arguments.count})
                tell({"policy": policy, "program": name, "what": "weights", "ratios": weighted,
                      "median": statistics.median(weighted)})


if __name__ == "__main__":
    main()
