"""Pairs of programs on one GPU: both at once under slate, against one after the other natively.

    python3 bench/pairs.py --build build/release --policy adaptive --policy table --json pairs.jsonl

Each program repeats its kernel for --seconds of its own time alone, natively, started together with the other one by
a barrier after the inputs are on the device. A row is the time from the common start to the later end, over the sum
of the two native times alone. Every pair runs --rounds times under one slated: the first round searches, the later
ones know. On sim the sizes are tiny and the times mean nothing; that the rows come is what can be tested there.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from private_slated import private_slated

# Sizes as in the papers' programs, so that kernels take 0.1 to 16 ms on an H200.
PROGRAMS = {
    "black_scholes": 40_000_000,
    "gaussian": 2048,
    "sgemm": 4096,
    "transpose": 16384,
    "quasi_random": 1 << 22,
    "stream_read": 1 << 26,
    "fma_loop": 1 << 24,
    "hotspot": 12288,
    "lud": 4096,
    "needleman_wunsch": 16384,
    "nearest_neighbours": 1 << 25,
    "convolution": 16384,
    "radix_sort": 1 << 25,
    "sparse_matvec": 4_000_000,
    "molecular_dynamics": 20,
    "finite_differences": 512,
    "image_denoising": 4096,
    "bfs": 8_000_000,
    "tensor_gemm": 8192,
    "nbody": 131072,
    "monte_carlo": 32768,
}
TINY = {"black_scholes": 20_000, "gaussian": 48, "sgemm": 160, "transpose": 128, "quasi_random": 4096,
        "stream_read": 1 << 14, "fma_loop": 1 << 12, "hotspot": 100, "lud": 96, "needleman_wunsch": 300,
        "nearest_neighbours": 20_000, "convolution": 150, "radix_sort": 10_000, "sparse_matvec": 4000,
        "molecular_dynamics": 2, "finite_differences": 24, "image_denoising": 32, "bfs": 10_000, "nbody": 500,
        "monte_carlo": 6}  # sim has no Tensor cores for tensor_gemm


class Runner:
    def __init__(self, build, sizes):
        self.build = build
        self.sizes = sizes

    def start(self, name, reps, warm, barrier, environment, how):
        command = [os.path.join(self.build, "bin", how, name), "--json", "--no-check", "--size", str(self.sizes[name]),
                   "--reps", str(reps), "--warm", str(warm), "--barrier", barrier]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def run(self, jobs, environment, how):
        """jobs: [(name, reps)]; all at once. Returns their reports."""
        with tempfile.TemporaryDirectory(prefix="slate-pairs-") as root:
            barrier = os.path.join(root, "go")
            started = [self.start(name, reps, max(1, reps // 100), barrier, environment, how) for name, reps in jobs]
            while len(os.listdir(root)) < len(jobs):
                if any(process.poll() is not None for process in started):
                    sys.exit("a program ended before the start: %s" % jobs)
                time.sleep(0.001)
            open(barrier, "w").close()
            reports = []
            for process in started:
                out, _ = process.communicate()
                if process.returncode:
                    sys.exit("%s ended with %d" % (process.args, process.returncode))
                reports.append(json.loads(out))
            return reports

    def reps_for(self, name, seconds, probe, environment, how):
        """How often the program's kernel runs alone in that time, by `probe` runs of it; at least 2."""
        report = self.run([(name, probe)], environment, how)[0]
        return max(2, round(seconds * 1e3 / (report["loop_ms"] / report["reps"])))


def makespan(reports):
    """Milliseconds from the first start to the last end."""
    return max(r["loop_started_ms"] + r["loop_ms"] for r in reports) - min(r["loop_started_ms"] for r in reports)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each program alone")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--policy", action="append", help="of slated; several are possible")
    parser.add_argument("--programs", nargs="*", help="all that the device can run by default")
    parser.add_argument("--only", nargs="*", help="pairs as A,B; all by default")
    parser.add_argument("--settings", default="", help="further TOML for slated")
    parser.add_argument("--trace", help="directory for a trace of each policy")
    parser.add_argument("--json", help="file for the rows, appended to")
    arguments = parser.parse_args()
    native = arguments.device.startswith("cuda")
    runner = Runner(arguments.build, PROGRAMS if native else TINY)
    rows = open(arguments.json, "a") if arguments.json else None

    def tell(row):
        if rows:
            rows.write(json.dumps(row) + "\n")
            rows.flush()

    # Alone: first a few launches to know how many make up the time, then that many. Without a GPU, under slate.
    pairs = ([tuple(pair.split(",")) for pair in arguments.only] if arguments.only else
             list(itertools.combinations_with_replacement(arguments.programs or runner.sizes, 2)))
    names = sorted({name for pair in pairs for name in pair})
    reps, alone = {}, {}

    def measure_alone(environment, how):
        for name in names:
            reps[name] = runner.reps_for(name, arguments.seconds, 20, environment, how) if native else 2
            alone[name] = statistics.median(runner.run([(name, reps[name])], environment, how)[0]["loop_ms"]
                                            for _ in range(3 if native else 1))
            print("%-14s alone %8.1f ms, %6d x %.4f ms" % (name, alone[name], reps[name], alone[name] / reps[name]))
            tell({"program": name, "alone_ms": alone[name], "reps": reps[name]})

    if native:
        measure_alone(dict(os.environ), "shared")
    for policy in arguments.policy or ["adaptive"]:
        settings = 'policy = "%s"\n%s' % (policy, arguments.settings)
        with private_slated(arguments.build, arguments.device, settings) as environment:
            if not alone:
                measure_alone(environment, "slate")
            for name in names:  # solo under slate, known afterwards
                report = runner.run([(name, reps[name])], environment, "slate")[0]
                report = runner.run([(name, reps[name])], environment, "slate")[0]
                ratio = report["loop_ms"] / alone[name]
                print("%-9s %-14s alone %.3f of native" % (policy, name, ratio))
                tell({"policy": policy, "solo": name, "ratio": ratio})
            for one, other in pairs:
                sequential = alone[one] + alone[other]
                ratios = []
                for number in range(arguments.rounds):
                    reports = runner.run([(one, reps[one]), (other, reps[other])], environment, "slate")
                    ratios.append(makespan(reports) / sequential)
                    tell({"policy": policy, "pair": [one, other], "round": number, "ratio": ratios[-1],
                          "loops_ms": [report["loop_ms"] for report in reports], "sequential_ms": sequential})
                print("%-9s %-14s %-14s %s" % (policy, one, other, "  ".join("%.2fx" % (1 / r) for r in ratios)),
                      flush=True)
            if arguments.trace:
                subprocess.run([os.path.join(arguments.build, "bin", "slatectl"), "trace", "--out",
                                os.path.join(arguments.trace, policy + ".json")], env=environment, check=False)


if __name__ == "__main__":
    main()
