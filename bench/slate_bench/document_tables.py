"""The tables of documents. Each kind is a function that takes the rows of one file or more, one argument a file, and
gives (heading, lines of cells), or None where the files hold nothing of that kind."""

import collections
import itertools

from . import statistics, summary, tables
from .names import human, name_of, ordered
from .tables import number

# Bars of gains over one after the other: words, programs (None: all pairs; one: beside any other), least gain.
GAIN_BARS = (
    ("slowest of all pairs", None, 0.98),
    ("stream_read + fma_loop", ("fma_loop", "stream_read"), 1.50),
    ("transpose + fma_loop", ("fma_loop", "transpose"), 1.25),
    ("sgemm + stream_read", ("sgemm", "stream_read"), 1.40),
    ("quasi_random + stream_read", ("quasi_random", "stream_read"), 1.25),
    ("gaussian + gaussian", ("gaussian", "gaussian"), 2.2),
    ("gaussian + any other", ("gaussian",), 1.35),
)
PATH_CASES = (  # case of path.py, words, bar: a time, or a ratio to native
    ("launch_call", "asynchronous launch call", "0.3 us"),
    ("launch_sustained", "launches in a row, each", "1.00"),
    ("launch_synchronize", "launch and synchronize", "1.15"),
    ("event_query", "`cudaEventQuery`", "0.1 us"),
    ("event_elapsed", "`cudaEventElapsedTime`", ""),
    ("malloc_1m", "`cudaMalloc` of 1 MiB", "15 us"),
    ("to_device_4", "4 bytes to the device", "1.5"),
    ("to_host_4", "4 bytes to the host", "1.5"),
)
COPIES = ("to_device_pinned", "to_host_pinned", "to_device_pageable", "to_host_pageable", "on_device_device")
RESIZES = {  # what resize_bench does: words
    "give half to another kernel": "give half of the SMs, us",
    "preempt and run a kernel of one wave": "give all SMs, us",
    "grow, workers on all SMs": "workers on all SMs again, us",
    "grow, all workers": "all workers again, us",
}
SLOW = 1.05  # of native: programs above it are named


def gain_bars(*files):
    """The bars of pairs; a column a file, of first meetings where it holds one round."""
    measured = [slate_gains(rows) for rows in files]
    lines = [
        (words, "%.2f" % bar, *(gain_cell(gains, programs, bar) for gains in measured))
        for words, programs, bar in GAIN_BARS
    ]
    return ("gain over one after the other", "bar", *(commits(rows) for rows in files)), lines


def slate_gains(rows):
    return {pair: each.gain for (pair, name), each in summary.best_pairs(rows).items() if name == summary.SLATE}


def gain_cell(gains, programs, bar):
    """The gain, or its range where a program is beside any other, and whether it misses the bar."""
    if programs is None:
        found = [min(gains.values())]
    elif len(programs) == 1:
        found = [gain for pair, gain in gains.items() if programs[0] in pair and pair[0] != pair[1]]
    else:
        found = [gains[programs]]
    text = " to ".join("%.3f" % gain for gain in sorted({min(found), max(found)}))
    return text if min(found) >= bar else text + " **missed**"


def commits(rows):
    return " and ".join(dict.fromkeys(row["commit"] for row in rows))


def pair_matrix(rows):
    """Gains of all pairs of a few programs, of each configuration in one cell."""
    found = summary.best_pairs(rows)
    names = ordered({name for _, name in found} - {"native"})
    programs = sorted({program for pair, _ in found for program in pair})
    lines = []
    for row in programs:
        cells = [
            " / ".join("%.2f" % found[(column, row), name].gain for name in names if ((column, row), name) in found)
            for column in programs
        ]
        lines.append((row, *cells))
    return (" / ".join(map(name_of, names)), *programs), lines


def rivals(*files):
    """slate over each rival, a file after the other."""
    lines = []
    for rows in files:
        best = summary.best_pairs(rows)
        others = {key: pair for key, pair in best.items() if "gaussian" not in key[0]}
        for rival, words, pairs in (
            ("mps", "MPS", best),
            ("mps", "MPS, pairs without gaussian", others),
            ("mps-split", "MPS, best percentages of each pair", best),
            ("green", "green contexts, best split of each pair", best),
        ):
            comparison = summary.compare(pairs, summary.SLATE, rival)
            if comparison:
                lines.append((commits(rows), words, *comparison_cells(comparison)))
    heading = ("commit", "rival", "pairs", "mean", "geometric mean", "median", "best", "worst", "lost by over 2 %")
    return heading, lines


def comparison_cells(comparison):
    ratios = list(comparison.ratios.values())
    figures = (statistics.mean(ratios), comparison.mean, comparison.median, comparison.best[1])
    worst = "%.3f %s" % (comparison.worst[1], summary.label(comparison.worst[0]))
    return (len(ratios), *("%.2f" % figure for figure in figures), worst, len(comparison.losses()))


def alone(rows):
    """Programs alone under slate, in short: times over native, and what a loop takes beyond its kernels."""
    found = [solo for (_, name), solo in summary.solos(rows).items() if name == summary.SLATE]
    lines = []
    for words, field, bar in (
        ("time of the application over native, start-up included", "application_ratios", "1.00"),
        ("time of the loop over native", "loop_ratios", "1.01"),
    ):
        ratios = {solo.program: summary.middle(getattr(solo, field)) for solo in found}
        lines.append((words, "%.3f" % statistics.geometric_mean(ratios.values()), *ends(ratios, "%.3f"), bar))
    for configuration, bar in ((summary.SLATE, "mean 1 %"), ("native", "")):
        shares = communication(rows, configuration)
        words = "launches and waits, share of the application, %s" % configuration
        lines.append((words, "%.2f %%" % statistics.mean(shares.values()), *ends(shares, "%.2f %%"), bar))
    return ("of %d programs" % len(found), "mean (of ratios geometric)", "least", "most", "bar"), lines


def ends(values, form):
    """The least and the greatest value, with their programs."""
    names = min(values, key=values.get), max(values, key=values.get)
    return ["%s %s" % (form % values[name], name) for name in names]


def communication(rows, configuration):
    """{program: what its loop takes beyond its kernels, in per cent of its application}"""
    shares = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "solo" and row["configuration"] == configuration and not row["cold"]:
            shares[row["program"]].append(100 * summary.parts_of(row)["launches"] / row["application_ms"])
    return {program: statistics.median(values) for program, values in shares.items()}


def arrangements(*files):
    """The last search of each pair."""
    last = {tuple(row["programs"]): row for rows in files for row in rows if row["kind"] == "arrangements"}
    return tables.arrangement_table(last.values())


def medians_of_path(rows, field):
    """{(case, bytes): {configuration: median over the rounds}}"""
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if field in row:
            values[row["case"], row.get("bytes")][row["configuration"]].append(row[field])
    return {key: {name: statistics.median(each) for name, each in found.items()} for key, found in values.items()}


def path(rows):
    """Calls through slated and natively, and what a start and many programs at once take."""
    medians, tails = medians_of_path(rows, "median_us"), medians_of_path(rows, "p99_us")
    lines = []
    for case, words, bar in PATH_CASES:
        slated, native = medians[case, None]["slated"], medians[case, None]["native"]
        cells = ["%s us" % number(value, 2) for value in (slated, tails[case, None]["slated"], native)]
        lines.append((words, *cells, number(slated_over_native(medians[case, None]), 2), bar))
    starts = medians_of_path(rows, "wall_ms")["first_result", None]
    for name, bar in (("warm cache", "0.05"), ("cold cache", "")):
        slated = starts["slated, " + name]
        cells = ["%s ms" % number(slated, 2), "", "%s ms" % number(starts["native"])]
        lines.append(("start to the first result, " + name, *cells, number(slated / starts["native"], 2), bar))
    return ("what", "slated", "99th percentile", "native", "over native", "bar"), lines + burst_lines(rows)


def burst_lines(rows):
    rates = collections.defaultdict(list)
    for row in rows:
        if row["case"] == "burst":
            rates[row["clients"], row["configuration"]].append(row["rate"])
    rates = {key: statistics.median(values) for key, values in rates.items()}
    lines = []
    for clients in sorted({clients for clients, _ in rates}):
        slated, native = rates[clients, "slated"], rates[clients, "native"]
        words = "launches a second of %s" % ("one program" if clients == 1 else "%d programs" % clients)
        lines.append((words, "%.2f M" % (slated / 1e6), "", "%.2f M" % (native / 1e6), number(slated / native, 2), ""))
    return lines


def slated_over_native(medians):
    return medians["slated"] / medians["native"]


def copies(rows):
    """Time of copies over native: every second size, and the worst of all sizes."""
    medians = medians_of_path(rows, "median_us")
    sizes = sorted({size for case, size in medians if case == COPIES[0]})
    ratios = {size: [slated_over_native(medians[case, size]) for case in COPIES] for size in sizes}
    worst = [max(column) for column in zip(*ratios.values(), strict=True)]
    shown = [*((human(size), ratios[size]) for size in sizes[::2]), ("worst of %d sizes" % len(sizes), worst)]
    lines = [(words, *("%.2f" % ratio for ratio in line)) for words, line in shown]
    heading = ("bytes", "pinned to the device", "pinned from it", "pageable to it", "pageable from it", "within it")
    return heading, lines


def forms(rows):
    """The worker form's speed over native: with the tasks that slated chooses, and at the best size."""
    lines = []
    for kernel, found in itertools.groupby(rows, key=lambda row: row["kernel"]):
        found = list(found)
        usual = [row for row in found if row["usual"]][0]
        best = max(found, key=lambda row: row["ratio"])
        cells = [number(usual["native_ms"]), "%.3f" % usual["ratio"], "%.3f" % best["ratio"], best["setting"]]
        lines.append((kernel, *cells))
    return ("kernel", "native ms", "speed as slated sizes tasks", "at the best size", "best setting"), lines


def resizing(rows):
    """p99 (median) of each way, by the time of a block."""
    cells = {(row["block_us"], row["what"]): "%.0f (%.0f)" % (row["p99_us"], row["median_us"]) for row in rows}
    tasks = {row["block_us"]: row["task_blocks"] for row in rows}
    lines = [("%.1f us" % block, task, *(cells[block, way] for way in RESIZES)) for block, task in tasks.items()]
    return ("a block natively", "blocks a task", *RESIZES.values()), lines


def dispatch(rows):
    """Times by who launches again, the host or the device."""
    fields = ("native_us", "host_us", "device_us", "host_epoch_us", "device_epoch_us")
    lines = [(row["kernel"], *(number(row[name]) for name in fields), row["retreats"]) for row in rows]
    heading = ("kernel", "native us", "by the host us", "by the device us", "epoch, host us", "epoch, device us")
    return (*heading, "retreats"), lines


def least_seconds(rows):
    """{program: {phase: least time of its runs}}"""
    found = collections.defaultdict(dict)
    for row in rows:
        if "name" in row:
            phases = found[row["name"]]
            phases[row["phase"]] = min(row["seconds"], phases.get(row["phase"], row["seconds"]))
    return found


def over_native(rows, phase):
    """{program: its least time in that phase over its least native time}"""
    found = least_seconds(rows).items()
    return {name: least[phase] / least["native"] for name, least in found if phase in least and "native" in least}


def programs(rows):
    """Runs of programs that nobody here wrote, by phase."""
    lines = []
    for phase, words in (("cold", "cold"), ("warm", "warm"), ("eight", "eight at a time")):
        runs = [row for row in rows if row["phase"] == phase]
        if not runs:
            continue
        wrong = collections.Counter(row["name"] for row in runs if row["verdict"] != "right")
        ratios = over_native(rows, phase).values() if phase != "eight" else ()
        cells = [", ".join(wrong) or "none", "", ""]
        if ratios:
            cells[1:] = "%.2f" % statistics.median(ratios), sum(ratio > SLOW for ratio in ratios)
        lines.append((words, len(runs), len(runs) - wrong.total(), *cells))
    return ("phase", "runs", "right", "not right", "over native, median", "programs above %.2f" % SLOW), lines


def slow_programs(rows):
    """The programs that take longer than natively, the worst first."""
    cold, warm = over_native(rows, "cold"), over_native(rows, "warm")
    least = least_seconds(rows)
    slow = sorted((name for name in warm if max(cold[name], warm[name]) > SLOW), key=lambda name: -warm[name])
    lines = [(name, number(least[name]["native"]), "%.2f" % cold[name], "%.2f" % warm[name]) for name in slow]
    return ("program", "native s", "cold over native", "warm over native"), lines


KINDS = {
    "gain-bars": gain_bars,
    "pair-matrix": pair_matrix,
    "rivals": rivals,
    "alone": alone,
    "arrangements": arrangements,
    "fairness": tables.fairness_table,
    "mix": tables.mix_table,
    "path": path,
    "copies": copies,
    "forms": forms,
    "resizing": resizing,
    "dispatch": dispatch,
    "programs": programs,
    "slow-programs": slow_programs,
}
