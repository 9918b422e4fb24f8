#!/usr/bin/env python3
"""Draws a trace of slatectl: SMs held per session over time, stacked, with the kernels below.

    slatectl trace --last 2 --out trace.json
    scripts/plot_trace.py trace.json --out trace.png
"""

import argparse
import json
from collections import defaultdict


def read(path):
    """Names by process, SM counts [(ms, SMs)] by process, kernels [(start, length, name, form)] by process,
    resizes [(ms, text)] by process."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    names, held, kernels, resizes = {}, defaultdict(list), defaultdict(list), defaultdict(list)
    for event in events:
        process = event["pid"]
        if event["ph"] == "M" and event["name"] == "process_name":
            names[process] = event["args"]["name"]
        elif event["ph"] == "C":
            held[process].append((event["ts"] / 1000, event["args"]["SMs"]))
        elif event.get("cat") == "kernel":
            kernels[process].append((event["ts"] / 1000, event["dur"] / 1000, event["name"], event["args"]["form"]))
        elif event.get("cat") == "resize":
            resizes[process].append((event["ts"] / 1000, event["name"]))
    return names, held, kernels, resizes


def steps(points, times):
    """The value of a step function at each of `times`, which are in rising order."""
    values, value, index = [], 0, 0
    for time in times:
        while index < len(points) and points[index][0] <= time:
            value = points[index][1]
            index += 1
        values.append(value)
    return values


def window(points, start, end):
    return [point for point in points if start <= point[0] <= end]


def draw(path, out, start, end):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plot

    names, held, kernels, resizes = read(path)
    sessions = sorted(held)
    if not sessions:
        raise SystemExit("%s: no session held any SM" % path)
    first = min(points[0][0] for points in held.values())
    last = max(points[-1][0] for points in held.values())
    start, end = first + (start or 0), first + end if end else last
    times = sorted({start, end} | {time for points in held.values() for time, _ in window(points, start, end)})
    stacks = [steps(held[session], times) for session in sessions]
    shifted = [time - first for time in times]
    colours = plot.get_cmap("tab10")
    figure, (above, below) = plot.subplots(
        2, 1, sharex=True, figsize=(11, 3.5 + 0.45 * len(sessions)), height_ratios=[3, 0.2 + 0.45 * len(sessions)])
    above.stackplot(shifted, stacks, step="post", labels=[names.get(session, session) for session in sessions],
                    colors=[colours(i % 10) for i in range(len(sessions))], alpha=0.85)
    above.set_ylabel("SMs held")
    above.set_ylim(bottom=0)
    above.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=2, frameon=False)
    for i, session in enumerate(sessions):
        shown = [kernel for kernel in kernels[session] if kernel[0] + kernel[1] >= start and kernel[0] <= end]
        for form, hatch in (("native", None), ("worker", "///"), ("slice", "...")):
            bars = [(kernel[0] - first, kernel[1]) for kernel in shown if kernel[3] == form]
            below.broken_barh(bars, (i - 0.35, 0.7), facecolors=colours(i % 10), edgecolor="white", linewidth=0.4,
                              hatch=hatch, alpha=0.85)
        marks = [time - first for time, _ in window(resizes[session], start, end)]
        below.plot(marks, [i] * len(marks), "k|", markersize=12)
        wide = (end - start) / 12
        for begin, length, name, _ in shown:
            if length >= wide:
                below.text(begin - first + length / 2, i, name[:28], ha="center", va="center", fontsize=8)
    below.set_yticks(range(len(sessions)), [names.get(session, str(session)).split(" (")[0] for session in sessions])
    below.set_ylim(len(sessions) - 0.5, -0.5)
    below.set_xlim(start - first, end - first)
    below.set_xlabel("ms   (hatched: worker form; | resized)")
    figure.tight_layout()
    figure.savefig(out, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--out", required=True)
    parser.add_argument("--start", type=float, help="ms after the first kernel")
    parser.add_argument("--end", type=float, help="ms after the first kernel")
    options = parser.parse_args()
    draw(options.trace, options.out, options.start, options.end)


if __name__ == "__main__":
    main()
