"""The report's sentences: what was won and what was lost, in the same words and the same place, and what is missing."""

import collections

from . import statistics, summary
from .names import name_of

RIVALS = (
    ("native", "plain time slicing"),
    ("mps", "MPS as it comes"),
    ("mps-split", "MPS with the best percentages of each pair"),
    ("green", "green contexts with the best split of each pair"),
    ("static", "the best static partition of each pair, by MPS or green contexts"),
)
TOLERANCE = 0.02  # runs differ by about as much


def change(ratio):
    return "%.1f %% %s" % (abs(100 * (ratio - 1)), "more" if ratio >= 1 else "less")


def counted(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def about_pairs(found):
    """Slate's adaptive policy against each rival, wins and losses."""
    if not any(name == summary.SLATE for _, name in found):
        return ["Pairs were not measured under %s." % summary.SLATE]
    sentences = []
    for rival, words in RIVALS:
        comparison = summary.compare(found, summary.SLATE, rival)
        if comparison is None:
            sentences.append("Not measured: pairs under %s." % words)
            continue
        best, worst = comparison.best, comparison.worst
        sentences.append(
            "Against %s, over %s, slate did %s work a time in the geometric mean (median: %s); best %s (%s), worst %s (%s). %s"
            % (
                words,
                counted(len(comparison.ratios), "pair"),
                change(comparison.mean),
                change(comparison.median),
                change(best[1]),
                summary.label(best[0]),
                change(worst[1]),
                summary.label(worst[0]),
                losses(comparison),
            )
        )
    sentences.append(against_sequential(found))
    return sentences


def losses(comparison):
    lost = sorted(comparison.losses(TOLERANCE).items(), key=lambda item: item[1])
    won = sum(ratio > 1 + TOLERANCE for ratio in comparison.ratios.values())
    text = "It won %d, lost %d, and was within %g %% in %d." % (
        won,
        len(lost),
        100 * TOLERANCE,
        len(comparison.ratios) - won - len(lost),
    )
    if lost:
        text += " Lost: " + ", ".join("%s (%.2f)" % (summary.label(pair), ratio) for pair, ratio in lost) + "."
    return text


def against_sequential(found):
    gains = {programs: pair.gain for (programs, name), pair in found.items() if name == summary.SLATE}
    slower = sorted((gain, programs) for programs, gain in gains.items() if gain < 1 - TOLERANCE)
    text = (
        "Against one program after the other natively the gain is %.2f in the geometric mean."
        % statistics.geometric_mean(list(gains.values()))
    )
    if slower:
        text += (
            " Slower together than one after the other: "
            + ", ".join("%s (%.2f)" % (summary.label(programs), gain) for gain, programs in slower)
            + "."
        )
    return text


def about_solos(rows):
    """What a program alone pays."""
    found = {key: solo for key, solo in summary.solos(rows).items() if key[1] == summary.SLATE and solo.loop_ratios}
    if not found:
        return ["Programs alone were not measured under %s." % summary.SLATE]
    sentences = []
    for field, words in (
        ("application_ratios", "whole applications, start-up included, take"),
        ("loop_ratios", "loops of kernels take"),
    ):
        ratios = {program: summary.middle(getattr(solo, field)) for (program, _), solo in found.items()}
        slowest = max(ratios, key=ratios.get)
        over = sorted(program for program, ratio in ratios.items() if ratio > 1.005)
        sentences.append(
            "Alone, %s %.3f of their native time in the geometric mean over %s; the worst is %s with %.3f. %s"
            % (
                words,
                statistics.geometric_mean(list(ratios.values())),
                counted(len(ratios), "program"),
                slowest,
                ratios[slowest],
                "Longer than natively: %s." % ", ".join("%s (%.3f)" % (each, ratios[each]) for each in over)
                if over
                else "None takes longer than natively.",
            )
        )
    return sentences


def about_mixes(rows):
    mixes = summary.mixes(rows)
    if summary.SLATE not in mixes:
        return ["A mix of arrivals was not measured under %s." % summary.SLATE]
    ours = {key: statistics.median(values) for key, values in mixes[summary.SLATE].items()}
    sentences = []
    for name in mixes:
        if name != summary.SLATE:
            theirs = {key: statistics.median(values) for key, values in mixes[name].items()}
            sentences.append(
                "Of programs that arrive over time, slate finished %.2f times as many a second as %s, "
                "with %.2f times its mean turnaround (lower is better)."
                % (
                    ours["throughput_per_s"] / theirs["throughput_per_s"],
                    name_of(name),
                    ours["mean_turnaround_ms"] / theirs["mean_turnaround_ms"],
                )
            )
    return sentences


def about_gaps(rows):
    """What was not measured, and what failed: every row that says so, counted."""
    counts = collections.Counter()
    for row in rows:
        if row["kind"] == "skipped":
            counts["%s was left out: %s" % (row["configuration"], row["reason"])] += 1
        elif row["kind"] == "left_out":
            counts["left out: %s (%s)" % (row["what"], row["reason"])] += 1
        elif row["kind"] == "failure":
            counts[
                "failed: %s, %s: %s" % (row["configuration"], summary.label(row["programs"]), row["message"][:200])
            ] += 1
    return ["%s%s." % (text, " (%d times)" % count if count > 1 else "") for text, count in counts.items()] or [
        "Nothing failed, and nothing was left out."
    ]
