"""The report's pictures, by matplotlib, from what summary.py computes. Each function returns a Figure, or None where
nothing of its kind was measured."""

import collections

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import TwoSlopeNorm  # noqa: E402

from . import statistics, summary  # noqa: E402
from .names import COLOURS, name_of, ordered, short  # noqa: E402

PARTS = {"kernels": "#c44e52", "launches": "#dd8452", "set-up": "#4c72b0", "process": "#b7b7b7", "injection": "#8172b3"}


def canvas(width, height):
    figure, axes = plt.subplots(figsize=(width, height), dpi=110)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def grouped_bars(axes, labels, series, reference=1.0):
    """`series`: {configuration: a value or None a label}. A line at the reference."""
    width = 0.84 / max(1, len(series))
    for number, (configuration, values) in enumerate(series.items()):
        places = [index - 0.42 + width * (number + 0.5) for index, value in enumerate(values) if value is not None]
        axes.bar(
            places,
            [value for value in values if value is not None],
            width,
            color=COLOURS[configuration],
            label=name_of(configuration),
        )
    if reference is not None:
        axes.axhline(reference, color="black", linewidth=0.8)
    axes.set_xticks(range(len(labels)), labels, rotation=40, ha="right")


def figure_1(rows):
    """Speed by SMs: that of the worker form on the most SMs is 1."""
    return sweep_figure(rows, "sms", "SMs", "speed relative to all SMs", lambda by: by[max(by)])


def figure_5(rows):
    """Kernel time by task size: natively is 1."""
    return sweep_figure(rows, "task_size", "blocks a task", "kernel time, native = 1", None)


def figure_workers(rows):
    return sweep_figure(
        rows, "workers_per_sm", "workers an SM", "speed relative to most workers", lambda by: by[max(by)]
    )


def sweep_figure(rows, what, label, unit, base):
    """A line a kernel. `base` picks of {value: ms} the time that speeds are relative to; None: times over native's."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    natives = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "sweep" and row["what"] == what:
            times[row["kernel"]][row["value"]].append(row["kernel_ms"])
            natives[row["kernel"]].append(row["native_ms"])
    if not times:
        return None
    figure, axes = canvas(8, 4.2)
    for number, (kernel, by_value) in enumerate(sorted(times.items())):
        medians = {value: statistics.median(found) for value, found in sorted(by_value.items())}
        scale = base(medians) if base else statistics.median(natives[kernel])
        values = [scale / ms if base else ms / scale for ms in medians.values()]
        look = {"marker": "os^Dv"[number // 10 % 5], "color": plt.cm.tab10(number % 10)}
        axes.plot(list(medians), values, markersize=3.5, linewidth=1.2, label=kernel, **look)
    if what == "task_size":
        axes.set_xscale("log", base=2)
        axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xlabel(label)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, ncol=2, frameon=False, bbox_to_anchor=(1.01, 1), loc="upper left")
    return figure


def figure_6(rows):
    """Application time alone, in parts, natively and under slate; the native whole is 1."""
    parts = summary.overheads(rows)
    programs = sorted({program for program, _ in parts})
    if not programs:
        return None
    figure, axes = canvas(max(6, 0.8 * len(programs) + 3), 4.2)
    configurations = ordered({configuration for _, configuration in parts})
    width = 0.8 / len(configurations)
    for number, configuration in enumerate(configurations):
        for index, program in enumerate(programs):
            whole = sum(parts.get((program, configurations[0]), {}).values())
            bottom = 0
            for part, ms in parts.get((program, configuration), {}).items():
                axes.bar(
                    index - 0.4 + width * (number + 0.5),
                    ms / whole,
                    width * 0.92,
                    bottom=bottom,
                    color=PARTS[part],
                    label=part if number == len(configurations) - 1 and index == 0 else None,
                )
                bottom += ms / whole
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(programs)), programs, rotation=40, ha="right")
    axes.set_ylabel("application time, %s = 1" % configurations[0])
    axes.set_title("left to right: " + ", ".join(configurations), fontsize=9)
    axes.legend(frameon=False, bbox_to_anchor=(1.01, 1), loc="upper left")
    return figure


def figure_7(found, papers):
    """The paper's pairs: time together over time one after the other; below 1 is a gain."""
    pairs = [pair for pair in sorted({programs for programs, _ in found}) if set(pair) <= papers]
    return pair_bars(found, pairs) if pairs else None


def pair_bars(found, pairs):
    configurations = ordered({configuration for programs, configuration in found if programs in pairs})
    figure, axes = canvas(max(7, 0.75 * len(pairs) + 3), 4.4)
    series = {
        name: [1 / found[pair, name].gain if (pair, name) in found else None for pair in pairs]
        for name in configurations
    }
    grouped_bars(axes, [short(pair) for pair in pairs], series)
    axes.set_ylabel("time together,\none after the other natively = 1")
    axes.legend(fontsize=8, frameon=False, ncol=4, bbox_to_anchor=(0, 1.02), loc="lower left")
    return figure


def figure_ratios(found, ours):
    """Every pair's ratio to each rival, in rising order: the area below 1 is what is lost."""
    comparisons = {rival: summary.compare(found, ours, rival) for rival in ("native", "mps", "static")}
    comparisons = {rival: each for rival, each in comparisons.items() if each}
    if not comparisons:
        return None
    figure, axes = canvas(8, 3.8)
    colours = dict(COLOURS, static=COLOURS["green"])
    for rival, comparison in comparisons.items():
        values = sorted(comparison.ratios.values())
        places = [100 * (index + 0.5) / len(values) for index in range(len(values))]
        axes.plot(
            places,
            values,
            marker=".",
            markersize=4,
            color=colours[rival],
            label="over %s" % ("the best static partition" if rival == "static" else name_of(rival)),
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 4, 5, 7, 10) if low <= tick <= high]
    axes.set_yticks(ticks, ["%g" % tick for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("pairs, % (in the order of the ratio)")
    axes.set_ylabel("%s: work a time,\nover the rival's" % ours)
    axes.legend(frameon=False)
    return figure


def heat_map(found, ours, rival=None):
    """All pairs: gain over one after the other, or over the rival. 1 is white."""
    values = {programs: pair.gain for (programs, name), pair in found.items() if name == ours}
    if rival:
        comparison = summary.compare(found, ours, rival)
        values = comparison.ratios if comparison else {}
    values = {pair: value for pair, value in values.items() if len(pair) == 2}
    if not values:
        return None
    names = sorted({name for pair in values for name in pair})
    grid = [[values.get(tuple(sorted((one, other))), float("nan")) for other in names] for one in names]
    side = max(4.5, 0.52 * len(names) + 2.2)
    figure, axes = plt.subplots(figsize=(side + 0.8, side), dpi=110)
    axes.set_facecolor("#dddddd")  # not measured
    # Colours end at half and twice, lest one large gain makes all others look alike.
    image = axes.imshow(grid, cmap="RdBu", norm=TwoSlopeNorm(1, 0.5, 2))
    for y, line in enumerate(grid):
        for x, value in enumerate(line):
            if value == value:
                dark = value < 0.7 or value > 1.6
                axes.text(
                    x, y, "%.2f" % value, ha="center", va="center", fontsize=7, color="white" if dark else "black"
                )
    axes.set_xticks(range(len(names)), names, rotation=50, ha="right", fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    figure.colorbar(image, shrink=0.75, extend="both")
    return figure


def figure_mix(rows):
    """Throughput and mean turnaround of a mix."""
    mixes = summary.mixes(rows)
    if not mixes:
        return None
    names = ordered(mixes)
    figure, both = plt.subplots(1, 2, figsize=(9, 3.4), dpi=110)
    for axes, key, label in (
        (both[0], "throughput_per_s", "programs a second (higher is better)"),
        (both[1], "mean_turnaround_ms", "mean turnaround, s (lower is better)"),
    ):
        scale = 1e-3 if key.endswith("_ms") else 1
        values = [scale * statistics.median(mixes[name][key]) for name in names]
        axes.bar(range(len(names)), values, color=[COLOURS[name] for name in names])
        for index, value in enumerate(values):
            axes.text(index, value, "%.3g" % value, ha="center", va="bottom", fontsize=8)
        axes.set_xticks(range(len(names)), [name_of(name) for name in names], rotation=25, ha="right", fontsize=8)
        axes.set_title(label, fontsize=10)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure
