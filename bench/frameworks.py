"""Stock PyTorch through slated against natively, in turns on one GPU: alone, and two at once beside time slicing and MPS. Prints
ratios of medians; JSON lines go to --out.

    python3 bench/frameworks.py --build build/release --rounds 3 --parts alone,pairs,inference --out frameworks.jsonl
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from slate_bench.daemons import Mps, private_slated, with_driver_front, without_mps

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frameworks", "torch_work.py")
REQUESTED = 0.3  # part of the time that requests alone keep the device busy
ALONE = ("add", "gemm", "cnn", "transformer", "gpt2")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--parts", default="alone,pairs,inference")
    parser.add_argument("--work", default=",".join(ALONE), help="what the part alone measures")
    parser.add_argument("--pairs", default="large+large,cnn+large")
    parser.add_argument("--mps", default="plain", help="configurations of MPS: plain, and numbers for percentages of threads")
    parser.add_argument("--against", default="slices,mps", help="besides slate, for pairs and inference")
    parser.add_argument("--percentages", default="50,70", help="of threads that MPS gives a training beside inference")
    parser.add_argument("--settings", default="", help="a file of settings for slated")
    parser.add_argument("--out")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
OUT = open(ARGUMENTS.out, "w") if ARGUMENTS.out else None


def note(row):
    if OUT:
        OUT.write(json.dumps(row) + "\n")
        OUT.flush()


def start(work, environment, rate=0.0, meeting=()):
    return subprocess.Popen(
        [sys.executable, WORK, work, "--seconds", str(ARGUMENTS.seconds), "--rate", str(rate), *meeting],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process, how):
    out, err = process.communicate(timeout=300)
    if process.returncode != 0:
        sys.exit("%s failed: %s" % (how, err[-2000:]))
    row = dict(json.loads(out.splitlines()[-1]), how=how)
    note(row)
    return row


def alone(environments):
    print("%-12s %10s %10s %8s %s" % ("alone", "native ms", "slate ms", "ratio", "start to first kernel, native and slate, s"))
    for work in ARGUMENTS.work.split(","):
        rows = {how: [] for how in environments}
        for _ in range(ARGUMENTS.rounds):
            for how, environment in environments.items():
                rows[how].append(finish(start(work, environment), how))
        median = {how: statistics.median(r["median_ms"] for r in of) for how, of in rows.items()}
        first = {how: statistics.median(r["first_kernel_s"] - r["import_s"] for r in of) for how, of in rows.items()}
        print("%-12s %10.3f %10.3f %8.3f %.2f %.2f" % (
            work, median["native"], median["slate"], median["slate"] / median["native"], first["native"], first["slate"]), flush=True)


def together(how, names, environments, rates=None):
    """Runs them at once, from when all are ready; `environments`: one each."""
    with tempfile.TemporaryDirectory(prefix="slate-meet-") as folder:
        meeting = ("--meet", folder, "--together", str(len(names)))
        running = [
            start(name, environment, (rates or {}).get(i, 0), meeting)
            for i, (name, environment) in enumerate(zip(names, environments))
        ]
        return [finish(each, "%s %d" % (how, i)) for i, each in enumerate(running)]


def speed(row):
    return row["steps"] / row["seconds"]


def pairs(native, slate):
    for pair in ARGUMENTS.pairs.split(","):
        names = pair.split("+")
        alone_speed = {name: speed(finish(start(name, native), "native alone")) for name in set(names)}
        base = [alone_speed[name] for name in names]

        def tell(how, rows):
            parts = [speed(row) / of for row, of in zip(rows, base)]
            print("%-28s %-14s %s  sum %.3f" % (pair, how, " + ".join("%.3f" % part for part in parts), sum(parts)), flush=True)

        if "slices" in ARGUMENTS.against:
            tell("time slices", together("time slices", names, [native] * 2))
        if "mps" in ARGUMENTS.against:
            with Mps() as environment:
                for kind in ARGUMENTS.mps.split(","):
                    limited = environment if kind == "plain" else dict(environment, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=kind)
                    tell("MPS " + kind, together("mps " + kind, names, [limited] * 2))
        tell("slate", together("slate", names, [slate] * 2))


def inference(native, slate):
    """A request every so often beside a training. What is left to the training is 1 - REQUESTED."""
    single = finish(start("inference", native), "native alone")
    rate = REQUESTED * speed(single)
    quiet = finish(start("inference", native, rate), "native alone at a rate")
    base = speed(finish(start("large", native), "native alone"))
    print("inference alone: %.2f ms a request; at %.0f a second median %.2f, p95 %.2f, p99 %.2f ms" % (
        single["median_ms"], rate, quiet["median_ms"], quiet["p95_ms"], quiet["p99_ms"]))
    print("%-18s %8s %8s %8s %s" % ("over alone", "median", "p95", "p99", "training, of what is left"))

    def tell(how, environments):
        rows = together(how, ["inference", "large"], environments, {0: rate})
        print("%-18s %8.2f %8.2f %8.2f %8.3f" % (
            how, *(rows[0][part] / quiet[part] for part in ("median_ms", "p95_ms", "p99_ms")), speed(rows[1]) / base / (1 - REQUESTED)), flush=True)

    if "slices" in ARGUMENTS.against:
        tell("time slices", [native] * 2)
    if "mps" in ARGUMENTS.against:
        with Mps() as environment:
            tell("MPS", [environment] * 2)
            # 0 is MPS's normal priority, and 1 the lower one.
            tell("MPS priority", [environment, dict(environment, CUDA_MPS_CLIENT_PRIORITY="1")])
            for percent in ARGUMENTS.percentages.split(","):
                tell("MPS %s %%" % percent, [environment, dict(environment, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=percent)])
    tell("slate", [slate] * 2)
    tell("slate priority", [dict(slate, SLATE_PRIORITY="5"), slate])


def main():
    settings = open(ARGUMENTS.settings).read() if ARGUMENTS.settings else ""
    with private_slated(ARGUMENTS.build, "cuda", settings) as environment:
        native, slate = without_mps(os.environ), with_driver_front(environment, ARGUMENTS.build)
        parts = ARGUMENTS.parts.split(",")
        if "alone" in parts:
            alone({"native": native, "slate": slate})
        if "pairs" in parts:
            pairs(native, slate)
        if "inference" in parts:
            inference(native, slate)


main()
