"""From rows to figures: medians of every program and pair, compared within the run that they come from, and an SQLite
file of them. Everything that the report says is computed here."""

import collections
import json
import os
import sqlite3
from dataclasses import dataclass, field

from . import statistics

SLATE = "slate-adaptive"
STATIC = ("mps-split", "green")


@dataclass
class Solo:
    """A program alone in one configuration; lists have a value a run of the program."""

    program: str
    configuration: str
    loop_ms: list = field(default_factory=list)
    application_ms: list = field(default_factory=list)
    kernel_ms: list = field(default_factory=list)
    hashes: set = field(default_factory=set)
    loop_ratios: list = field(default_factory=list)  # over the reference's median in the same run
    application_ratios: list = field(default_factory=list)
    kernel_ratios: list = field(default_factory=list)


@dataclass
class Pair:
    """Programs at once in one configuration, by one split. gains: time one after the other over time together."""

    programs: tuple
    configuration: str
    split: tuple = None
    sms: tuple = None
    gains: list = field(default_factory=list)
    gains_by_run: dict = field(default_factory=dict)
    antt: list = field(default_factory=list)
    stp: list = field(default_factory=list)
    fairness: list = field(default_factory=list)

    @property
    def gain(self):
        return statistics.median(self.gains)

    def over(self, rival):
        """Median ratio of its gain to the rival's in the same run; None where they met in no run."""
        runs = self.gains_by_run.keys() & rival.gains_by_run.keys()
        ratios = [
            statistics.median(self.gains_by_run[run]) / statistics.median(rival.gains_by_run[run]) for run in runs
        ]
        return statistics.median(ratios) if ratios else None

    @property
    def first_gain(self):
        """Of the first round, in which slate does not know the pair."""
        return self.gains[0]


def reference_of(rows):
    """{run: configuration} whose solo times everything is compared with."""
    return {row["run"]: row["configuration"] for row in rows if row["kind"] == "calibration"}


def medians_alone(rows, fields=("loop_ms", "application_ms", "kernel_ms")):
    """{(run, program, field): median} in the reference configuration of the run."""
    reference = reference_of(rows)
    values = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "solo" and not row["cold"] and row["configuration"] == reference.get(row["run"]):
            for name in fields:
                if row[name] is not None:
                    values[row["run"], row["program"], name].append(row[name])
    return {key: statistics.median(found) for key, found in values.items()}


def solos(rows):
    """{(program, configuration): Solo}"""
    alone = medians_alone(rows)
    found = {}
    for row in rows:
        if row["kind"] != "solo" or row["cold"]:
            continue
        key = row["program"], row["configuration"]
        solo = found.setdefault(key, Solo(*key))
        if row["hash"]:
            solo.hashes.add(row["hash"])
        for name in ("loop_ms", "application_ms", "kernel_ms"):
            if row[name] is not None:
                getattr(solo, name).append(row[name])
                base = alone.get((row["run"], row["program"], name))
                if base:
                    getattr(solo, name.removesuffix("_ms") + "_ratios").append(row[name] / base)
    return found


def with_all_splits(rows):
    """The rows of pairs, without those of a configuration that was left before it had tried every split of its run: the
    best of fewer splits is no best split."""
    rows = [row for row in rows if row["kind"] == "pair"]
    tried, most = collections.defaultdict(set), collections.Counter()
    for row in rows:
        if row["split"]:
            tried[row["run"], row["configuration"], *row["programs"]].add(tuple(row["split"]))
    for (run, configuration, *_), splits in tried.items():
        most[run, configuration] = max(most[run, configuration], len(splits))
    return [
        row
        for row in rows
        if not row["split"]
        or len(tried[row["run"], row["configuration"], *row["programs"]]) == most[row["run"], row["configuration"]]
    ]


def pairs(rows):
    """{(programs, configuration, split): Pair}, programs in alphabetical order. Pairs whose programs have no time alone
    in their run are left out."""
    alone = medians_alone(rows)
    found = {}
    for row in sorted(with_all_splits(rows), key=lambda row: row["round"]):
        base = [alone.get((row["run"], name, "loop_ms")) for name in row["programs"]]
        if None in base:
            continue
        order = sorted(range(len(base)), key=lambda index: row["programs"][index])
        programs = tuple(row["programs"][index] for index in order)
        split = row["split"] and tuple(row["split"][index] for index in order)
        pair = found.setdefault((programs, row["configuration"], split), Pair(programs, row["configuration"], split))
        pair.sms = row["sms"] and tuple(row["sms"][index] for index in order)
        pair.gains.append(sum(base) / row["makespan_ms"])
        pair.gains_by_run.setdefault(row["run"], []).append(pair.gains[-1])
        pair.antt.append(statistics.antt(row["times_ms"], base))
        pair.stp.append(statistics.stp(row["times_ms"], base))
        pair.fairness.append(statistics.fairness(row["times_ms"], base))
    return found


def best_pairs(rows):
    """{(programs, configuration): Pair}, of several splits the one with the best median: known only afterwards, which
    favours the configurations that have splits."""
    best = {}
    for (programs, configuration, _), pair in pairs(rows).items():
        key = programs, configuration
        if key not in best or pair.gain > best[key].gain:
            best[key] = pair
    return best


@dataclass
class Comparison:
    """One configuration against another over the pairs that both ran: ratios of their gains."""

    ratios: dict  # by pair

    @property
    def mean(self):
        return statistics.geometric_mean(list(self.ratios.values()))

    @property
    def median(self):
        return statistics.median(list(self.ratios.values()))

    @property
    def best(self):
        return max(self.ratios.items(), key=lambda item: item[1])

    @property
    def worst(self):
        return min(self.ratios.items(), key=lambda item: item[1])

    def losses(self, tolerance=0.02):
        return {pair: ratio for pair, ratio in self.ratios.items() if ratio < 1 - tolerance}


def compare(found, ours, theirs):
    """Of best_pairs(): configuration `ours` against `theirs`, or against the better one of STATIC if that is "static";
    None where no pair ran in both in the same run."""
    ratios = {}
    for (programs, configuration), pair in found.items():
        if configuration == ours:
            rivals = [found.get((programs, name)) for name in (STATIC if theirs == "static" else (theirs,))]
            against = [ratio for ratio in (pair.over(rival) for rival in rivals if rival) if ratio]
            if against:
                ratios[programs] = min(against)
    return Comparison(ratios) if ratios else None


def parts_of(row):
    """Where the time of a program alone went, milliseconds; None for an own program, which does not say."""
    if row["kernel_ms"] is None or row["total_ms"] is None:
        return None
    kernels = min(row["reps"] * row["kernel_ms"], row["loop_ms"])
    return {
        "kernels": kernels,
        "launches": row["loop_ms"] - kernels,
        "set-up": max(0.0, row["total_ms"] - row["loop_ms"]),
        "process": max(0.0, row["application_ms"] - row["total_ms"]),
    }


def overheads(rows):
    """{(program, configuration): {part: median ms}} of the runs of `overhead`. Of slate's configurations "injection" too:
    how much longer the application takes when nothing of it was compiled before."""
    parts, applications = collections.defaultdict(list), collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "solo" and row["command"] == "overhead":
            applications[row["program"], row["configuration"], row["cold"]].append(row["application_ms"])
            found = parts_of(row)
            if found and not row["cold"]:
                parts[row["program"], row["configuration"]].append(found)
    result = {}
    for key, found in parts.items():
        result[key] = {part: statistics.median([each[part] for each in found]) for part in found[0]}
        if (*key, True) in applications:
            cold, warm = (statistics.median(applications[(*key, state)]) for state in (True, False))
            result[key]["injection"] = max(0.0, cold - warm)
    return result


def mixes(rows):
    """{configuration: {figure: values, one a passage}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if row["kind"] == "mix":
            for name in ("makespan_ms", "throughput_per_s", "mean_turnaround_ms"):
                found[row["configuration"]][name].append(row[name])
    return found


def memories(rows):
    """{case: {order: its rows}} of programs with more memory than the device."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if row["kind"] == "memory":
            found[row["what"]][row["order"]].append(row)
    return found


def median_of(rows, field):
    """Of the rows that have the field; None where none has it."""
    return middle([row[field] for row in rows if row[field] is not None])


def label(programs):
    return " + ".join(programs)


def write_sqlite(rows, path):
    """Tables row (all, as JSON), solo and pair (medians and spreads)."""
    if os.path.exists(path):
        os.remove(path)
    with sqlite3.connect(path) as database:
        database.execute("create table row (kind text, run text, time text, json text)")
        database.executemany(
            "insert into row values (?, ?, ?, ?)",
            ((row["kind"], row["run"], row["time"], json.dumps(row)) for row in rows),
        )
        database.execute(
            "create table solo (program text, configuration text, runs integer, loop_ms real, loop_spread real,"
            " kernel_ms real, application_ms real, loop_ratio real, application_ratio real)"
        )
        for solo in solos(rows).values():
            database.execute(
                "insert into solo values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    solo.program,
                    solo.configuration,
                    len(solo.loop_ms),
                    middle(solo.loop_ms),
                    statistics.spread(solo.loop_ms),
                    middle(solo.kernel_ms),
                    middle(solo.application_ms),
                    middle(solo.loop_ratios),
                    middle(solo.application_ratios),
                ),
            )
        database.execute(
            "create table pair (programs text, configuration text, split text, sms text, runs integer, gain real,"
            " spread real, first_gain real, antt real, stp real, fairness real)"
        )
        for pair in pairs(rows).values():
            database.execute(
                "insert into pair values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    label(pair.programs),
                    pair.configuration,
                    shares(pair.split),
                    shares(pair.sms),
                    len(pair.gains),
                    pair.gain,
                    statistics.spread(pair.gains),
                    pair.first_gain,
                    statistics.median(pair.antt),
                    statistics.median(pair.stp),
                    statistics.median(pair.fairness),
                ),
            )
    database.close()


def middle(values):
    return statistics.median(values) if values else None


def shares(split):
    return "/".join("%g" % share for share in split) if split else None


def memory_lines(rows):
    """For the terminal: what programs with more memory than the device took, in each order."""
    for what, orders in memories(rows).items():
        for order, found in orders.items():
            parts = [order or "natively"]
            for field, words, unit in (
                ("makespan_ms", "%.2f s", 1e3),
                ("longest_round_ms", "longest round %.0f ms", 1),
                ("moved_out", "%.1f GiB to the host", 2**30),
                ("moved_in", "%.1f GiB back", 2**30),
                ("to_host_per_s", "%.1f GB/s to the host", 1e9),
                ("to_device_per_s", "%.1f GB/s to the device", 1e9),
                ("failed", "%d without memory", 1),
            ):
                value = median_of(found, field)
                parts += [] if value is None else [words % (value / unit)]
            yield "%-15s %s" % (what, ", ".join(parts))


def lines(rows):
    """A few lines for the terminal: each configuration's gains, and slate against its rivals."""
    found = best_pairs(rows)
    for name in dict.fromkeys(configuration for _, configuration in found):
        gains = {programs: pair.gain for (programs, configuration), pair in found.items() if configuration == name}
        worst, best = min(gains, key=gains.get), max(gains, key=gains.get)
        yield "%-15s %3d pairs: mean gain over one after the other %.3f, best %.2f (%s), worst %.2f (%s)" % (
            name,
            len(gains),
            statistics.geometric_mean(list(gains.values())),
            gains[best],
            label(best),
            gains[worst],
            label(worst),
        )
    for rival in ("native", "mps", "mps-split", "green", "static"):
        comparison = compare(found, SLATE, rival)
        if comparison:
            yield "%s over %-9s mean %.3f, median %.3f, best %.2f (%s), worst %.2f (%s), %d of %d lost by more than 2 %%" % (
                SLATE,
                rival,
                comparison.mean,
                comparison.median,
                comparison.best[1],
                label(comparison.best[0]),
                comparison.worst[1],
                label(comparison.worst[0]),
                len(comparison.losses()),
                len(comparison.ratios),
            )
    for name, figures in mixes(rows).items():
        yield "%-15s mix: %.3g programs a second, mean turnaround %.3g s" % (
            name,
            statistics.median(figures["throughput_per_s"]),
            statistics.median(figures["mean_turnaround_ms"]) / 1e3,
        )
    for row in rows:
        if row["kind"] == "fairness":
            yield "%-15s %-15s %s: last end over first %.3f" % (
                row["program"],
                row["configuration"],
                row["what"],
                row["ratio"],
            )
        if row["kind"] == "arrangements":
            yield "%s: slate's %.3f (%s), best %.3f (%s), reached %.3f" % (
                label(row["programs"]),
                row["own"],
                row["own_arrangement"],
                row["ratios"][row["best"]],
                row["best"],
                row["reached"],
            )
    yield from memory_lines(rows)
    for (program, configuration), found in sorted(overheads(rows).items()):
        yield "%-15s %-15s %s" % (program, configuration, ", ".join("%s %.1f ms" % part for part in found.items()))
    for (program, configuration), solo in sorted(solos(rows).items()):
        if solo.loop_ratios and configuration != "native":
            yield "%-15s alone, %-15s application %.3f of the reference's, loop %.3f" % (
                program,
                configuration,
                middle(solo.application_ratios),
                middle(solo.loop_ratios),
            )
