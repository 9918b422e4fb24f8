"""Draws how fast copies of all sizes are, natively and through slated, from what path.py --out wrote.

    python3 bench/copies_plot.py path.jsonl copies.png
"""

import collections
import json
import statistics
import sys

from slate_bench.figures import canvas
from slate_bench.names import human

# Cases of path_bench bandwidth, with their titles.
CASES = {
    "to_device_pinned": "pinned, to the device",
    "to_host_pinned": "pinned, from the device",
    "to_device_pageable": "pageable, to the device",
    "to_host_pageable": "pageable, from the device",
    "on_device_device": "within the device",
}
BAR = 0.9  # of native


def speeds(path):
    """{case: {bytes: slated's speed over native's, medians}}."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path) as rows:
        for row in map(json.loads, rows):
            if row.get("case") in CASES:
                times[row["case"], row["bytes"]][row["configuration"]].append(row["median_us"])
    result = collections.defaultdict(dict)
    for (case, size), by in times.items():
        if by["native"] and by["slated"]:
            result[case][size] = statistics.median(by["native"]) / statistics.median(by["slated"])
    return result


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    by_case = speeds(sys.argv[1])
    if not by_case:
        sys.exit("no copies in %s that were measured both ways (path.py --parts bandwidth --out)" % sys.argv[1])
    figure, axes = canvas(9, 4.5)
    for case, title in CASES.items():
        sizes = sorted(by_case[case])
        axes.plot(sizes, [by_case[case][size] for size in sizes], marker="o", markersize=3, label=title)
    axes.set_xscale("log", base=4)
    axes.set_yscale("log", base=2)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(BAR, color="grey", linewidth=0.8, linestyle="--")
    ticks = [4**power for power in range(1, 17, 2)]
    axes.set_xticks(ticks, [human(tick) for tick in ticks])
    axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_xlabel("bytes")
    axes.set_ylabel("speed over native's")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(sys.argv[2])


main()
