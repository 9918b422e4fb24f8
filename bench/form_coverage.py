"""How many strangers' kernels can take which form, and may be restarted: slate-inject --form analyse over a folder of PTX files, as
bench/corpus.py leaves them (the package is what stands before the first "__" of a file's name).

    python3 bench/form_coverage.py --tool build/release/bin/slate-inject /tmp/corpus/ptx
    python3 bench/form_coverage.py --ptxas 100 --smallest /tmp/corpus/ptx   # and assembles what inject writes

Launches of a kernel may be restarted (docs/injector.md) if all their pointers lead to allocations of their own.
Counted per entry; per distinct kernel name without template arguments, because some templates have hundreds of
instances (a name counts if all its instances can); and per file (a file counts if all its kernels can). With --ptxas a
sample of modules gets all forms and is assembled; where that fails, so is the original, to tell whose fault it is.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder")
parser.add_argument("--tool", default="build/release/bin/slate-inject")
parser.add_argument("--out", help="a JSON file for the figures")
parser.add_argument("--ptxas", type=int, default=0, metavar="N", help="assemble N modules with all forms")
parser.add_argument("--smallest", action="store_true", help="the N smallest modules instead of a random sample")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--assembler", default="ptxas")
parser.add_argument("--optimise", default="1", help="ptxas -O: errors come at any level, and 3 takes several times as long")
parser.add_argument("--max-registers", type=int, default=0, help="for the worker forms")
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--seconds", type=int, default=300, help="the most that one module may take")
arguments = parser.parse_args()

COUNTED = ("worker", "slice", "either", "restart", "arguments", "kernels")
PRINTED = ("worker", "either", "restart", "kernels")


def plain(name):
    """Without template arguments and parameters: "void ns::scale<float, (int)4>(float*)" is ns::scale."""
    name = name.replace("(anonymous namespace)", "{unnamed}")
    depth, kept = 0, []
    for i, character in enumerate(name):
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "(" and depth == 0:
            break
        elif depth == 0:
            kept.append(character)
    return "".join(kept).removeprefix("void ")


def analyse(files):
    done = subprocess.run([arguments.tool, "--form", "analyse", "--json", *files], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit("slate-inject ended with %d: %s" % (done.returncode, done.stderr))
    return json.loads(done.stdout)


class Tally:
    """Of one package, or of all: kernels, names and files with what all of their kernels can take."""

    def __init__(self):
        self.entries = collections.Counter()
        self.names = collections.defaultdict(list)
        self.files = collections.defaultdict(list)

    def add(self, file, package, kernel):
        worker, cut = kernel["worker"]["legal"], kernel["slice"]["legal"]
        can = {"worker": worker, "slice": cut, "either": worker or cut, "restart": kernel["restart"]["restartable"],
               "arguments": kernel["reach"]["from_arguments"], "kernels": True}
        self.entries.update(key for key in COUNTED if can[key])
        self.names[package, plain(kernel["demangled"])].append(can)
        self.files[file].append(can)

    @staticmethod
    def whole(groups):
        return collections.Counter(key for group in groups.values() for key in COUNTED if all(can[key] for can in group))

    def figures(self):
        return {"entries": dict(self.entries), "names": dict(self.whole(self.names)), "files": dict(self.whole(self.files))}


def print_coverage(result):
    tallies = collections.defaultdict(Tally)
    for file in result["files"]:
        package = os.path.basename(file["file"]).split("__")[0]
        for kernel in (k for image in file["images"] for k in image["kernels"]):
            for key in (package, "all"):
                tallies[key].add(file["file"], package, kernel)
    print("%-20s %26s %26s %26s   worker, worker or slice, may be restarted, of" % ("package", "entries", "names", "files"))
    for package in sorted(tallies, key=lambda name: (name == "all", name)):
        figures = tallies[package].figures()
        cells = ["%d %d %d %d" % tuple(figures[kind].get(key, 0) for key in PRINTED)
                 for kind in ("entries", "names", "files")]
        print("%-20s %26s %26s %26s" % (package, *cells))
    for kind, counts in tallies["all"].figures().items():
        shares = ["%s %.1f %%" % (key, 100 * counts.get(key, 0) / counts["kernels"]) for key in COUNTED[:-1]]
        print("all, per %s: %s" % (kind, ", ".join(shares)))
    for row in result["summary"]["reasons"]:
        print("%6d  no %s: %s" % (row["kernels"], row["refused"], row["reason"]))
    for file in result["files"]:
        for error in file["errors"]:
            print("%s: %s" % (os.path.basename(file["file"]), error))
    return {package: tally.figures() for package, tally in tallies.items()}


def assemble(path):
    """What is wrong with it: nothing, a timeout, or ptxas's words."""
    with open(path, errors="replace") as file:
        target = re.search(r"^\s*\.target\s+(sm_\w+)", file.read(1 << 20), re.MULTILINE)
    command = [arguments.assembler, "-O" + arguments.optimise, "-arch=" + (target.group(1) if target else "sm_90"), "-o", "/dev/null", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=arguments.seconds)
    except subprocess.TimeoutExpired:
        return "timeout"
    return "" if done.returncode == 0 else (done.stderr.strip() or "exit status %d" % done.returncode)


def try_forms(file):
    """(verdict, words, seconds): good, slow, original (bad before us already), injected (our fault), inject (no result)."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        injected = os.path.join(folder, "injected.ptx")
        command = [arguments.tool, "-o", injected, file]
        if arguments.max_registers:
            command += ["--max-registers", str(arguments.max_registers)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            return "inject", done.stderr.strip() or "exit status %d" % done.returncode, 0
        wrong = assemble(injected)
        seconds = time.monotonic() - began
        if not wrong or wrong == "timeout":
            return "slow" if wrong else "good", wrong, seconds
        return ("original" if assemble(file) else "injected"), wrong, seconds


def print_assembled(files):
    if arguments.smallest:
        sample = sorted(files, key=os.path.getsize)[: arguments.ptxas]
    else:
        sample = random.Random(arguments.seed).sample(files, min(arguments.ptxas, len(files)))
    verdicts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for file, (verdict, words, seconds) in zip(sample, pool.map(try_forms, sample)):
            verdicts[verdict] += 1
            if verdict != "good":
                print("%s: %s (%.0f s): %s" % (os.path.basename(file), verdict, seconds, words[:2000]), flush=True)
    print("assembled with all forms: %s of %d" % (verdicts["good"], len(sample)),
          "".join(", %d %s" % (count, verdict) for verdict, count in verdicts.items() if verdict != "good"))
    return verdicts


def main():
    files = sorted(glob.glob(os.path.join(arguments.folder, "*.ptx")))
    if not files:
        sys.exit("no .ptx in " + arguments.folder)
    figures = {"coverage": print_coverage(analyse(files))}
    if arguments.ptxas:
        figures["assembled"] = print_assembled(files)
    if arguments.out:
        with open(arguments.out, "w") as out:
            json.dump(figures, out, indent=1)
    return 1 if figures.get("assembled", {}).keys() & {"injected", "inject"} else 0


sys.exit(main())
