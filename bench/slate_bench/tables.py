"""The report's tables: each function gives (heading, lines of cells), or None where nothing of its kind was measured."""

import collections

from . import statistics, summary
from .names import name_of, ordered

NOTHING = "–"


def number(value, digits=3):
    """With so many significant digits, and no exponent."""
    if value is None:
        return NOTHING
    text = "%.*g" % (digits, value)
    return "%.0f" % value if "e" in text else text


def table_2(rows):
    """What each program computes and moves, of its kernels as slate counted and timed them."""
    programs = collections.defaultdict(lambda: [0.0, 0.0, 0.0, []])
    for row in latest_profile(rows):
        if row["program"] and row["flops"] is not None:
            found = programs[row["program"]]
            found[0] += row["flops"]
            found[1] += row["bytes"]
            found[2] += row["ms"]
            found[3].append((row["ms"], row["class"] or NOTHING))
    lines = [
        (name, number(flops / ms / 1e6, 4), number(size / ms / 1e6, 4), max(classes)[1], str(len(classes)))
        for name, (flops, size, ms, classes) in sorted(programs.items())
    ]
    return lines and (("program", "GFLOP/s", "GB/s asked for", "class (Table I), longest kernel", "kernels"), lines)


def latest_profile(rows):
    """One row a kernel, the last one."""
    return list({row["kernel"]: row for row in rows if row["kind"] == "profile"}.values())


def spread(values):
    return "%.1f %%" % (100 * statistics.spread(values)) if len(values) > 1 else NOTHING


def table_3(rows):
    """Gaussian elimination alone, natively and under slate."""
    found = summary.solos(rows)
    lines = []
    for configuration in ordered({name for program, name in found if program == "gaussian"}):
        solo = found["gaussian", configuration]
        lines.append(
            (
                name_of(configuration),
                number(summary.middle(solo.kernel_ms), 4),
                number(summary.middle(solo.loop_ms), 4),
                number(summary.middle(solo.application_ms), 4),
                number(summary.middle(solo.loop_ratios)),
            )
        )
    return lines and (
        ("gaussian under", "one elimination, ms", "loop, ms", "application, ms", "loop over native"),
        lines,
    )


def table_4(found):
    """black_scholes beside quasi_random."""
    pair = ("black_scholes", "quasi_random")
    lines = []
    for configuration in ordered({name for programs, name in found if programs == pair}):
        each = found[pair, configuration]
        lines.append(
            (
                name_of(configuration),
                percent(each.gain),
                number(statistics.median(each.stp)),
                number(statistics.median(each.antt)),
                number(statistics.median(each.fairness)),
            )
        )
    return lines and (
        ("black_scholes + quasi_random under", "throughput over one after the other", "STP", "ANTT", "fairness"),
        lines,
    )


def percent(ratio):
    return "%+.1f %%" % (100 * (ratio - 1))


def table_5(rows):
    """Every program alone: ratios to the reference of the same run, and whether results are the same bits."""
    found = summary.solos(rows)
    reference = set(summary.reference_of(rows).values())
    lines = []
    for (program, configuration), solo in sorted(found.items()):
        if configuration in reference or not solo.loop_ratios:
            continue
        hashes = set().union(*(found[program, name].hashes for name in reference if (program, name) in found))
        same = NOTHING if not solo.hashes or not hashes else "yes" if solo.hashes == hashes else "NO"
        lines.append(
            (
                program,
                name_of(configuration),
                number(summary.middle(solo.application_ratios)),
                number(summary.middle(solo.loop_ratios)),
                number(summary.middle(solo.kernel_ratios)),
                spread(solo.loop_ratios),
                same,
            )
        )
    return lines and (
        ("program", "configuration", "application", "loop", "kernel", "spread of the loop", "bit-equal"),
        lines,
    )


def pair_table(found):
    """Every pair's gain in every configuration, and how far slate's runs are apart."""
    names = ordered({configuration for _, configuration in found})
    lines = []
    for programs in sorted({programs for programs, _ in found}):
        cells = []
        for name in names:
            pair = found.get((programs, name))
            cells.append(
                NOTHING
                if pair is None
                else "%.2f%s" % (pair.gain, " (%s)" % summary.shares(pair.sms or pair.split) if pair.split else "")
            )
        ours = found.get((programs, summary.SLATE))
        cells += ["%.2f" % ours.first_gain, spread(ours.gains), str(len(ours.gains))] if ours else [NOTHING] * 3
        lines.append((summary.label(programs), *cells))
    return lines and (("pair", *map(name_of, names), "slate's first meeting", "slate's spread", "runs"), lines)


def metric_table(found):
    """ANTT, STP, fairness and gain of each configuration, over the pairs that all of them ran."""
    names = ordered({configuration for _, configuration in found})
    common = [
        programs for programs in {programs for programs, _ in found} if all((programs, name) in found for name in names)
    ]
    if not common:
        return None
    lines = []
    for name in names:
        pairs = [found[programs, name] for programs in common]
        lines.append(
            (
                name_of(name),
                number(statistics.geometric_mean([pair.gain for pair in pairs])),
                *(
                    number(statistics.mean([statistics.median(getattr(pair, field)) for pair in pairs]))
                    for field in ("antt", "stp", "fairness")
                ),
            )
        )
    return (
        "over the %d that all ran" % len(common),
        "gain, geometric mean",
        "ANTT (lower is better)",
        "STP (higher)",
        "fairness (1 is equal)",
    ), lines


def overhead_table(rows):
    parts = summary.overheads(rows)
    lines = []
    for (program, configuration), found in sorted(parts.items()):
        warm = sum(ms for part, ms in found.items() if part != "injection")
        lines.append(
            (
                program,
                name_of(configuration),
                *(number(found.get(part)) for part in ("kernels", "launches", "set-up", "process", "injection")),
                number(warm, 4),
            )
        )
    return lines and (
        (
            "program",
            "configuration",
            "kernels, ms",
            "launches",
            "set-up",
            "process",
            "injection, first run only",
            "application, warm",
        ),
        lines,
    )


def fairness_table(rows):
    values = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "fairness":
            values[row["program"], row["configuration"], row["what"], row["count"]].append(row["ratio"])
    words = {"equal": "%d equal ones", "weights": "%d of weights and work 1 to 3"}
    lines = [
        (program, name_of(configuration), words[what] % count, "%.3f" % statistics.median(ratios), str(len(ratios)))
        for (program, configuration, what, count), ratios in sorted(values.items())
    ]
    return lines and (("program", "configuration", "at once", "last end over first", "runs"), lines)


def memory_table(rows):
    """Programs with more memory than the device: a line a case, its orders side by side."""

    def cell(found, field, unit, digits=3):
        value = summary.median_of(found, field)
        return number(value and value / unit, digits)

    lines = []
    for what, orders in summary.memories(rows).items():
        alone, together = orders["one by one"], orders["at once"] or orders[None]
        first, times = together[0], [summary.median_of(each, "makespan_ms") for each in (alone, together)]
        lines.append(
            (
                what,
                str(first["tenants"] or NOTHING),
                number(first["bytes"] and first["bytes"] / first["device_bytes"]),
                cell(alone, "makespan_ms", 1e3),
                cell(together, "makespan_ms", 1e3),
                "%.2f" % (times[0] / times[1]) if all(times) else NOTHING,
                cell(together, "longest_round_ms", 1),
                cell(together, "moved_out", 2**30),
                cell(together, "moved_in", 2**30),
                cell(together, "to_host_per_s", 1e9),
                cell(together, "to_device_per_s", 1e9),
                cell(together, "failed", 1),
            )
        )
    heading = ("case", "programs", "their memory over the part", "one by one, s", "at once, s", "times as quick")
    heading += ("longest round, ms", "GiB to the host", "GiB back", "GB/s to the host", "GB/s back", "without memory")
    return lines and (heading, lines)


def arrangement_table(rows):
    lines = [
        (
            summary.label(row["programs"]),
            row["own_arrangement"],
            "%.3f" % row["own"],
            row["best"],
            "%.3f" % row["ratios"][row["best"]],
            "%.3f" % row["reached"],
            number(row["search_ms"]),
        )
        for row in rows
        if row["kind"] == "arrangements"
    ]
    return lines and (
        ("pair", "slate's arrangement", "its time", "best arrangement", "its time", "reached", "search, ms"),
        lines,
    )


def mix_table(rows):
    mixes = summary.mixes(rows)
    lines = [
        (
            name_of(name),
            str(len(mixes[name]["makespan_ms"])),
            *(
                number(statistics.median(mixes[name][key]) / scale)
                for key, scale in (("throughput_per_s", 1), ("mean_turnaround_ms", 1e3), ("makespan_ms", 1e3))
            ),
        )
        for name in ordered(mixes)
    ]
    return lines and (
        ("configuration", "passages", "programs a second", "mean turnaround, s", "all done after, s"),
        lines,
    )
