"""How many strangers' .cu files injector/source compiles so that every kernel has nvcc's name: the files of
bench/corpus.py that nvcc compiles and that have kernels.

    python3 bench/source_coverage.py --tool build/release/bin/source_bench --corpus /tmp/corpus

A file is *equal* when the same entries come out, *enough* when all of nvcc's do and others too, *fewer* when some are
missing, *failed* when it does not compile. Kernels of cub, thrust and cuda::, which the host code of those libraries
instantiates, are left out, and so are files with no others. Prints a table by package, the medians of the times, and the commonest reasons.
"""

import argparse
import collections
import concurrent.futures
import json
import re
import statistics
import subprocess

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--tool", default="build/release/bin/source_bench")
parser.add_argument("--corpus", default="/tmp/corpus")
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--seconds", type=int, default=120)
parser.add_argument("--only", nargs="*", help="these packages alone")
parser.add_argument("--out", help="a JSON file for every file's result")
arguments = parser.parse_args()

ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)*\.entry\s+([\w$]+)", re.MULTILINE)


def plain(names):
    """As a set; names in unnamed namespaces, of which each compiler makes its own, as c++filt gives them."""
    unnamed = sorted(name for name in names if "_GLOBAL__N_" in name)
    shown = subprocess.run(["c++filt"], input="\n".join(unnamed), capture_output=True, text=True).stdout.splitlines()
    return {name for name in names if "_GLOBAL__N_" not in name} | set(shown)


def own(name):
    """False for kernels of the libraries that come with CUDA, which their host code instantiates."""
    return not re.match(r"_ZN(3cub|6thrust|4cuda)", name)


def one(record):
    command = ["nice", arguments.tool, "--ptx"]
    for folder in record["includes"]:
        command += ["-I", folder]
    command += [option for option in record.get("options", []) if option.startswith("-D")]
    try:
        done = subprocess.run(command + [record["source"]], capture_output=True, timeout=arguments.seconds)
        answer = json.loads(done.stdout.decode(errors="replace"))
    except subprocess.TimeoutExpired:
        answer = {"ok": False, "error": "time limit"}
    except ValueError:
        answer = {"ok": False, "error": "tool ended with %d" % done.returncode}
    ours = plain(set(ENTRY.findall(answer.pop("ptx", ""))))
    theirs = plain({name for name in record["entries"] if own(name)})
    if not answer["ok"]:
        verdict = "failed"
    elif ours == theirs:
        verdict = "equal"
    else:
        verdict = "enough" if ours > theirs else "fewer"
    answer.update(verdict=verdict, package=record["package"], source=record["source"], entries=len(theirs))
    answer.update(missing=sorted(theirs - ours), extra=sorted(ours - theirs), found=len(ours & theirs))
    return answer


def reason(answer):
    if answer["verdict"] == "failed":
        first = answer["error"].splitlines()[0] if answer["error"] else ""
        return re.sub(r'"[^"]*"', '"..."', first.split("error: ")[-1])[:90]
    return "%s entries" % answer["verdict"]


def main():
    with open(arguments.corpus + "/manifest.json") as file:
        records = [r for r in json.load(file) if not arguments.only or r["package"] in arguments.only]
    records = [r for r in records if any(map(own, r["entries"]))]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        answers = list(pool.map(one, records))
    verdicts = ["equal", "enough", "fewer", "failed"]
    rows = collections.defaultdict(collections.Counter)
    for answer in answers:
        for name in (answer["package"], "all"):
            rows[name][answer["verdict"]] += 1
            rows[name]["found"] += answer["found"]
            rows[name]["entries"] += answer["entries"]
    print("%-20s %6s %6s %6s %6s %6s  %s" % ("package", "files", *verdicts, "entries found"))
    for name in sorted(rows, key=lambda n: (n == "all", n)):
        row = rows[name]
        counts = [row[v] for v in verdicts]
        print("%-20s %6d %6d %6d %6d %6d  %d/%d" % (name, sum(counts), *counts, row["found"], row["entries"]))
    good = rows["all"]["equal"] + rows["all"]["enough"]
    print("all of nvcc's entries: %d of %d files (%.1f %%)" % (good, len(answers), 100 * good / max(1, len(answers))))
    for key in ("strip_ms", "compile_ms"):
        times = [a[key] for a in answers if a["ok"] and key in a]
        if times:
            print("%s: median %.1f, largest %.0f" % (key, statistics.median(times), max(times)))
    reasons = collections.Counter(reason(a) for a in answers if a["verdict"] not in ("equal", "enough"))
    for text, count in reasons.most_common(30):
        print("%4d  %s" % (count, text))
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(answers, file, indent=1)


main()
