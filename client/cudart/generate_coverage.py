#!/usr/bin/env python3
"""Writes docs/coverage.md, or with --check fails when the file is not what would be written.

usage: generate_coverage.py [--check] NM HEADER OUTPUT OBJECT...

HEADER is the toolkit's cuda_runtime_api.h. Exit code 77, for a skipped test, when that is not CUDA 13.0's.
"""
import re
import sys

import coverage_table
from coverage_table import VARIANT

KNOWN_VERSION = 13000
SUITES = {"samples": "NVIDIA CUDA samples", "rodinia": "Rodinia", "parboil": "Parboil"}
PROGRAMS = {"samples": 140, "rodinia": 26, "parboil": 32}


def state_of(name, variants, defined, notes):
    """(state, remark) of a function and its variants."""
    if name not in defined:
        return "absent", notes.reason(name)
    lacking = [variant for variant in variants if variant not in defined]
    remarks = [notes.partial[name]] if name in notes.partial else []
    if lacking:
        remarks.append("not with per-thread default streams")
    return ("partial" if remarks else "yes"), "; ".join(remarks)


def demand_summary(defined):
    rows, groups = coverage_table.read_demand()
    lacking = [(name, counts) for name, _, counts in rows if name not in defined]
    lines = ["Of the %d functions of cudart that programs of three public suites use, %d are there." %
             (len(rows), len(rows) - len(lacking)),
             "It is only known how many programs call a function, or any of a group. Hence the lower bounds.", "",
             "| suite | programs | have every function of cudart that they call |", "|---|---|---|"]
    for suite, title in SUITES.items():
        without = 0
        for group in {group for name, group, _ in rows if name not in defined}:
            calls = sum(counts[suite] for name, its, counts in rows if its == group and name not in defined)
            without += min(calls, groups.get(group, {}).get(suite, calls))
        lines.append("| %s | %d | at least %d |" % (title, PROGRAMS[suite], max(0, PROGRAMS[suite] - without)))
    if lacking:
        lines += ["", "Lacking, with the number of programs that call them: " +
                  ", ".join("`%s` %d" % (name, sum(counts.values())) for name, counts in lacking) + "."]
    return lines


def document(header, defined):
    exports = coverage_table.read_exports()
    topics, notes = coverage_table.read_topics(header), coverage_table.Notes()
    variants = {}
    for name in exports:
        base = VARIANT.sub("", name)
        variants.setdefault(base, [])
        if base != name:
            variants[base].append(name)
    unknown = sorted(set(topics) - set(variants))
    if unknown:
        sys.exit("in the header, but not among the exports: " + " ".join(unknown))
    by_topic = {}
    for name, topic in topics.items():
        by_topic.setdefault(topic, []).append(name)
    for name in sorted(set(variants) - set(topics)):
        private = name.startswith("__cuda")
        by_topic.setdefault("Called by nvcc's host code" if private else "Of other headers", []).append(name)
    states = {name: state_of(name, variants[name], defined, notes) for name in variants}
    for name in exports:
        if name not in defined:
            notes.reason(name)
    if notes.stale(defined):
        sys.exit("coverage_notes.txt has lines that say nothing: " + " ".join(notes.stale(defined)))
    count = {state: sum(1 for s, _ in states.values() if s == state) for state in ("yes", "partial", "absent")}
    lines = ["# Coverage of the CUDA runtime", "",
             "Written by `client/cudart/generate_coverage.py` (target `slate_coverage`) from the symbols of libslate. A test",
             "compares. All %d names of CUDA 13.0's `libcudart.so.13` resolve. Variants for per-thread default streams" %
             len(exports),
             "(`_ptsz`, `_ptds`) share a line here.", "",
             "| of %d functions | number |" % len(states), "|---|---|",
             "| there | %d |" % count["yes"], "| there, with limits | %d |" % count["partial"],
             "| absent | %d |" % count["absent"], "",
             "An absent function returns `cudaErrorNotSupported` and says so once on stderr. slated counts its calls",
             "(`slatectl status`). All limits of slate: [limitations](limitations.md).", "",
             "## What programs use", ""]
    lines += demand_summary(defined)
    for topic, names in by_topic.items():
        lines += ["", "## " + topic, "", "| function | state | |", "|---|---|---|"]
        lines += ["| `%s` | %s | %s |" % (name, *states[name]) for name in names]
    return "\n".join(lines) + "\n"


def main():
    arguments = sys.argv[1:]
    check = arguments[0] == "--check"
    nm, header, output, *objects = arguments[1:] if check else arguments
    with open(header) as file:
        version = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", file.read())
    if version is None or int(version.group(1)) != KNOWN_VERSION:
        print("skipped: %s is not CUDA 13.0's" % header)
        sys.exit(77)
    text = document(header, coverage_table.defined_functions(nm, objects))
    if not check:
        with open(output, "w") as file:
            file.write(text)
        return
    with open(output) as file:
        if file.read() != text:
            sys.exit(output + " is not what generate_coverage.py writes: build the target slate_coverage")


main()
