"""The parts of slate-bench that need no process: lists, pairs, arrivals, statistics, summaries, the report's text."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import fakes  # noqa: F401 (finds slate_bench)
import sample_rows

from slate_bench import cli, findings, machine, mix, pairs, rows, statistics, summary, tables
from slate_bench.programs import UsageError, choose_pairs, own_program, read_list, sample


class ProgramsTest(unittest.TestCase):
    def test_the_list_has_the_papers_programs_and_sizes_by_device(self):
        on_gpu, on_sim = read_list(True), read_list(False)
        self.assertEqual(
            [name for name in on_gpu if on_gpu[name].paper],
            ["black_scholes", "gaussian", "sgemm", "quasi_random", "transpose"],
        )
        self.assertTrue(all(on_gpu[name].size > on_sim[name].size for name in on_sim))

    def test_sizes_of_the_command_line_win(self):
        self.assertEqual(read_list(True, {"sgemm": 77})["sgemm"].size, 77)

    def test_the_papers_programs_make_fifteen_pairs(self):
        self.assertEqual(len(choose_pairs(["paper"], read_list(True), 1)), 15)

    def test_samples_repeat_by_seed_spare_the_papers_pairs_and_are_balanced(self):
        programs = read_list(True)
        chosen = choose_pairs(["sample:60"], programs, 3)
        self.assertEqual(chosen, choose_pairs(["sample:60"], programs, 3))
        self.assertEqual(len(set(chosen)), 60)
        self.assertFalse(set(chosen) & set(choose_pairs(["paper"], programs, 3)))
        counts = [
            sum(pair.count(name) for pair in sample(choose_pairs(["all"], programs, 1), 26, 5)) for name in programs
        ]
        self.assertLessEqual(max(counts) - min(counts), 3)

    def test_unknown_pairs_are_refused(self):
        for word in ("sgemm,nothing", "sgemm", "sample:x"):
            with self.assertRaises(UsageError):
                choose_pairs([word], read_list(True), 1)

    def test_own_programs_are_split_as_a_shell_would(self):
        program = own_program("mine=./a.out --steps {reps} 'two words'")
        self.assertEqual(program.words(None, 7, 1, None), ["./a.out", "--steps", "7", "two words"])
        self.assertTrue(program.repeats)
        self.assertFalse(own_program("mine=./a.out").repeats)
        for text in ("mine", "mine=", "=x", "a b=x"):
            with self.assertRaises(UsageError):
                own_program(text)

    def test_splits_are_two_percentages(self):
        self.assertEqual(pairs.parse_splits("25/75,100/100"), [[25, 75], [100, 100]])
        for text in ("25", "0/100", "a/b", "50/101", "20/30/50"):
            with self.assertRaises(UsageError):
                pairs.parse_splits(text)


class OptionsTest(unittest.TestCase):
    def refused(self, *words):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            cli.parser().parse_args(words)
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_numbers_that_make_no_sense_are_refused(self):
        for words in (["--rounds", "0"], ["--seconds", "-1"], ["--max-minutes", "x"], ["--configurations", "nothing"]):
            self.assertIn(words[0], self.refused("pairs", *words))
        self.assertIn("--count", self.refused("fairness", "--count", "1"))

    def test_unknown_programs_and_sizes_are_refused_before_anything_starts(self):
        with tempfile.TemporaryDirectory() as root:
            for words in (["--programs", "nothing"], ["--size", "sgemm"], ["--size", "nothing=3"], ["--program", "x"]):
                with contextlib.redirect_stderr(io.StringIO()):
                    self.assertEqual(
                        cli.main(["solo", "--device", "sim", "--rows", os.path.join(root, "rows"), *words]), 2
                    )
            self.assertEqual(os.listdir(root), [])

    def test_the_commit_of_the_environment_wins(self):
        with mock.patch.dict(os.environ, {"SLATE_BENCH_COMMIT": "from-a-tarball"}):
            self.assertEqual(machine.Machine("sim").commit, "from-a-tarball")


class ArrivalsTest(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return mix.read_arrivals(file.name, read_list(True), 0.5)

    def test_arrivals_are_sorted_and_begin_at_zero(self):
        self.assertEqual(
            self.read("# comment\n2.5 sgemm 0.2\n\n2 transpose # here\n"), [(0, "transpose", 0.5), (0.5, "sgemm", 0.2)]
        )

    def test_a_line_that_makes_no_sense_is_named(self):
        for text in ("1 nothing\n", "-1 sgemm\n", "1 sgemm 0\n", "1 sgemm 1 2\n", "x sgemm\n", "sgemm\n"):
            with self.assertRaisesRegex(UsageError, ":1:"):
                self.read(text)
        with self.assertRaisesRegex(UsageError, "no arrivals"):
            self.read("# none\n")

    def test_drawn_arrivals_repeat_by_seed_and_use_every_program(self):
        drawn = mix.draw_arrivals(["a", "b", "c"], 32, 0.1, 0.5, 9)
        self.assertEqual(drawn, mix.draw_arrivals(["a", "b", "c"], 32, 0.1, 0.5, 9))
        self.assertEqual(len(drawn), 32)
        self.assertEqual(drawn[0][0], 0)
        self.assertEqual(drawn, sorted(drawn, key=lambda each: each[0]))
        names = [name for _, name, _ in drawn]
        self.assertTrue(all(10 <= names.count(name) <= 11 for name in "abc"))

    def test_figures_of_a_mix(self):
        jobs = [{"arrival_ms": 0, "ended_ms": 400}, {"arrival_ms": 100, "ended_ms": 1000}]
        self.assertEqual(mix.figures(jobs), {"makespan_ms": 1000, "throughput_per_s": 2.0, "mean_turnaround_ms": 650})


class StatisticsTest(unittest.TestCase):
    def test_measures_of_sharing(self):
        self.assertAlmostEqual(statistics.antt([200, 150], [100, 100]), 1.75)
        self.assertAlmostEqual(statistics.stp([200, 150], [100, 100]), 0.5 + 2 / 3)
        self.assertAlmostEqual(statistics.fairness([200, 150], [100, 100]), 0.75)

    def test_spread_is_relative_and_zero_for_one_value(self):
        self.assertEqual(statistics.spread([5]), 0)
        self.assertAlmostEqual(statistics.spread([90, 100, 110]), 0.05)


class SummaryTest(unittest.TestCase):
    def base(self, run="0123456789ab", alone=(100, 50)):
        names = ("a", "b")
        return [sample_rows.calibration(name, run) for name in names] + [
            sample_rows.solo(name, "native", ms, run=run) for name, ms in zip(names, alone)
        ]

    def test_a_gain_is_the_sum_alone_over_the_time_together(self):
        found = summary.best_pairs(self.base() + [sample_rows.pair(("b", "a"), "mps", 100, times_ms=[60, 100])])
        pair = found[("a", "b"), "mps"]
        self.assertAlmostEqual(pair.gain, 1.5)
        self.assertAlmostEqual(pair.antt[0], (1.0 + 1.2) / 2)

    def test_ratios_are_made_within_a_run(self):
        rows_ = self.base() + [sample_rows.pair(("a", "b"), "mps", 100)]
        other = "ffffffffffff"
        rows_ += self.base(other, (200, 100)) + [sample_rows.pair(("a", "b"), "mps", 100, run=other)]
        self.assertEqual(summary.best_pairs(rows_)[("a", "b"), "mps"].gains, [1.5, 3.0])

    def test_pairs_without_times_alone_in_their_run_are_left_out(self):
        self.assertEqual(summary.best_pairs(self.base()[:3] + [sample_rows.pair(("a", "b"), "mps", 100)]), {})

    def test_the_best_split_counts_and_keeps_its_shares_in_the_order_of_the_names(self):
        rows_ = self.base() + [
            sample_rows.pair(("b", "a"), "green", ms, split=split) for ms, split in ((150, (50, 50)), (100, (25, 75)))
        ]
        best = summary.best_pairs(rows_)[("a", "b"), "green"]
        self.assertEqual((best.split, best.sms, best.gain), ((75, 25), (99, 33), 1.5))

    def test_the_best_of_fewer_splits_than_others_had_is_no_best_split(self):
        rows_ = self.base() + [sample_rows.pair(("a", "a"), "green", 90, split=split) for split in ((50, 50), (25, 75))]
        rows_ += [sample_rows.pair(("a", "b"), "green", 100, split=(50, 50)), sample_rows.pair(("a", "b"), "mps", 100)]
        self.assertEqual(sorted(summary.best_pairs(rows_)), [(("a", "a"), "green"), (("a", "b"), "mps")])

    def test_configurations_are_compared_within_a_run_only(self):
        other = "ffffffffffff"
        rows_ = self.base() + [sample_rows.pair(("a", "b"), "slate-adaptive", 100)]
        rows_ += self.base(other) + [sample_rows.pair(("a", "b"), "mps", 50, run=other)]
        self.assertIsNone(summary.compare(summary.best_pairs(rows_), "slate-adaptive", "mps"))
        rows_.append(sample_rows.pair(("a", "b"), "slate-adaptive", 100, run=other))
        self.assertEqual(summary.compare(summary.best_pairs(rows_), "slate-adaptive", "mps").ratios, {("a", "b"): 0.5})

    def test_static_is_the_better_of_percentages_and_green_contexts(self):
        rows_ = self.base() + [
            sample_rows.pair(("a", "b"), "slate-adaptive", 100),
            sample_rows.pair(("a", "b"), "mps-split", 110, split=(50, 50)),
            sample_rows.pair(("a", "b"), "green", 90, split=(50, 50)),
        ]
        comparison = summary.compare(summary.best_pairs(rows_), "slate-adaptive", "static")
        self.assertAlmostEqual(comparison.ratios["a", "b"], 0.9)
        self.assertEqual(comparison.losses(), comparison.ratios)

    def test_the_first_meeting_is_the_first_round(self):
        rows_ = self.base() + [
            sample_rows.pair(("a", "b"), "slate-adaptive", ms, number) for number, ms in ((2, 90), (0, 150), (1, 100))
        ]
        self.assertEqual(summary.best_pairs(rows_)[("a", "b"), "slate-adaptive"].first_gain, 1.0)

    def test_cold_runs_count_as_injection_alone(self):
        rows_ = [sample_rows.calibration("a", command="overhead")]
        for cold, start in ((True, 500), (False, 300)):
            rows_.append(sample_rows.solo("a", "slate-adaptive", 100, cold=cold, command="overhead", start_ms=start))
        parts = summary.overheads(rows_)["a", "slate-adaptive"]
        self.assertAlmostEqual(parts["injection"], 200)
        self.assertAlmostEqual(sum(ms for part, ms in parts.items() if part != "injection"), 400)
        self.assertAlmostEqual(parts["kernels"], 99)

    def test_sqlite_has_the_medians(self):
        import sqlite3

        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, "summary.sqlite")
            summary.write_sqlite(self.base() + [sample_rows.pair(("a", "b"), "mps", 100)], path)
            database = sqlite3.connect(path)
            self.assertEqual(
                database.execute("select programs, configuration, gain, runs from pair").fetchall(),
                [("a + b", "mps", 1.5, 1)],
            )
            self.assertEqual(database.execute("select count(*) from row").fetchone(), (5,))
            database.close()


class FindingsTest(unittest.TestCase):
    def sentences(self, slate_ms, mps_ms=100):
        rows_ = SummaryTest().base() + [
            sample_rows.pair(("a", "b"), "slate-adaptive", slate_ms),
            sample_rows.pair(("a", "b"), "mps", mps_ms),
        ]
        return " ".join(findings.about_pairs(summary.best_pairs(rows_)))

    def test_losses_are_named(self):
        text = self.sentences(slate_ms=160)
        self.assertIn("did 37.5 % less work", text)
        self.assertIn("It won 0, lost 1, and was within 2 % in 0. Lost: a + b (0.62).", text)
        self.assertIn("Slower together than one after the other: a + b (0.94).", text)

    def test_wins_are_said_and_what_was_not_measured_too(self):
        text = self.sentences(slate_ms=80)
        self.assertIn("did 25.0 % more work", text)
        self.assertNotIn("Lost:", text)
        self.assertIn("Not measured: pairs under green contexts", text)

    def test_programs_that_are_slower_alone_are_named(self):
        rows_ = SummaryTest().base() + [
            sample_rows.solo("a", "slate-adaptive", 103, start_ms=100),
            sample_rows.solo("b", "slate-adaptive", 50),
        ]
        text = " ".join(findings.about_solos(rows_))
        self.assertIn("Longer than natively: a (1.030).", text)
        self.assertIn("None takes longer than natively.", text)

    def test_failures_are_said(self):
        text = " ".join(findings.about_gaps(sample_rows.every_kind()))
        self.assertIn("failed: mps, sgemm + fma_loop: ended with 2: <no>.", text)

    def test_bits_that_differ_are_said(self):
        rows_ = SummaryTest().base() + [
            sample_rows.solo("a", "slate-adaptive", digest="1" * 16),
            sample_rows.solo("b", "slate-adaptive"),
        ]
        self.assertEqual([line[-1] for line in tables.table_5(rows_)[1]], ["NO", "yes"])


class RowsTest(unittest.TestCase):
    def test_every_kind_fits_the_schema(self):
        self.assertEqual(rows.complaints(sample_rows.every_kind()), [])

    def test_what_does_not_fit_is_named(self):
        good = sample_rows.pair(("a", "b"), "mps", 100)
        for change in (
            {"kind": "nothing"},
            {"makespan_ms": 0},
            {"makespan_ms": None},
            {"clocks": 3},
            {"seed": "x"},
            {"split": [0, 100]},
        ):
            self.assertTrue(rows.complaints([dict(good, **change)]), change)
        for missing in ("times_ms", "commit", "machine", "clocks", "run"):
            self.assertTrue(rows.complaints([{key: value for key, value in good.items() if key != missing}]), missing)

    def test_a_broken_file_is_named_with_its_line(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("{}\nnot json\n")
            file.flush()
            with self.assertRaisesRegex(ValueError, ":2: not a row"):
                rows.read([file.name])


if __name__ == "__main__":
    unittest.main()
