"""Runs the programs of kernels/ natively and through slated on one device, alternating, and prints medians and whether
the outputs are bit-equal. JSON lines go to --out. Needs a build with kernels; on sim there is no native column.

    python3 bench/programs.py --build build/release --device cuda --rounds 5 --out programs.jsonl
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from private_slated import private_slated

HERE = os.path.dirname(os.path.abspath(__file__))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--device", default="cuda", help="as for slated --device")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program in each configuration")
    parser.add_argument("--out", help="file for JSON lines")
    return parser.parse_args()


def run(command, environment):
    started = time.perf_counter()
    reply = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    wall = time.perf_counter() - started
    if reply.returncode != 0:
        sys.exit("%s failed (%d): %s%s" % (command, reply.returncode, reply.stdout, reply.stderr))
    report = json.loads(reply.stdout)
    report["wall_ms"] = 1000 * wall
    return report


def measure(name, size, configurations, rounds):
    rows = {key: [] for key in configurations}
    for _ in range(rounds):
        for key, (command, environment) in configurations.items():
            rows[key].append(run(command + ["--size", str(size), "--reps", "5", "--json"], environment))
    return rows


def median(rows, field):
    return statistics.median(row[field] for row in rows)


def print_row(name, rows):
    slated = rows["slated"]
    text = "%-14s slated kernel %10.3f ms, wall %8.1f ms" % (name, median(slated, "kernel_ms"), median(slated, "wall_ms"))
    if "native" in rows:
        native = rows["native"]
        same = len({row["hash"] for row in native + slated}) == 1
        text += " | native kernel %10.3f ms, wall %8.1f ms | kernel ratio %.3f, wall ratio %.3f, outputs %s" % (
            median(native, "kernel_ms"), median(native, "wall_ms"),
            median(slated, "kernel_ms") / median(native, "kernel_ms"),
            median(slated, "wall_ms") / median(native, "wall_ms"), "bit-equal" if same else "DIFFER")
    print(text, flush=True)


def main():
    arguments = parse_arguments()
    on_gpu = arguments.device.startswith("cuda")
    with open(os.path.join(HERE, "../kernels/programs.txt")) as lines:
        rows = [line.split() for line in lines if line[0].isalpha()]
    programs = [row[:3] for row in rows if on_gpu or "gpu" not in row[4:]]
    binary = lambda *parts: os.path.join(arguments.build, "bin", *parts)
    out = open(arguments.out, "w") if arguments.out else None
    with private_slated(arguments.build, arguments.device) as environment:
        for name, sim_size, gpu_size in programs:
            configurations = {"slated": ([binary("slate", name)], environment)}
            if on_gpu:
                configurations["native"] = ([binary("shared", name)], dict(os.environ))
            rows = measure(name, gpu_size if on_gpu else sim_size, configurations, arguments.rounds)
            print_row(name, rows)
            for key, reports in rows.items():
                for report in reports:
                    if out:
                        out.write(json.dumps(dict(report, configuration=key)) + "\n")


main()
