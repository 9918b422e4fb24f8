"""The tables of documents: regions are filled and checked, and docs/results is what its files say. Needs neither
matplotlib nor a GPU."""

import contextlib
import glob
import io
import json
import os
import re
import tempfile
import unittest

import fakes
import sample_rows

from slate_bench import cli, document, document_tables

ROOT = os.path.join(fakes.BENCH, "..")
RESULTS = [os.path.join(ROOT, "docs", "results.md")]
RESULTS += sorted(glob.glob(os.path.join(ROOT, "docs", "results", "*.md")))


def run(name, phase, seconds, **fields):
    return dict(name=name, phase=phase, rc=0, seconds=seconds, **fields)


PROGRAMS = [
    run("quick", "native", 1.0),
    run("quick", "native", 0.8),
    run("quick", "cold", 0.4, verdict="right"),
    run("quick", "warm", 0.2, verdict="right"),
    run("slow", "native", 1.0),
    run("slow", "cold", 2.0, verdict="right"),
    run("slow", "warm", 3.0, verdict="wrong"),
    run("slow", "warm", 1.5, verdict="right"),
    {"phase": "eight-total", "runs": 0, "seconds": 1.0},
]


class DocumentTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        os.mkdir(os.path.join(self.folder, "docs"))
        self.page = os.path.join(self.folder, "docs", "page.md")

    def rows(self, name, found):
        with open(os.path.join(self.folder, name), "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)

    def write(self, text):
        with open(self.page, "w") as file:
            file.write(text)

    def read(self):
        with open(self.page) as file:
            return file.read()

    def report(self, *options):
        """Exit status of `slate-bench report`, and what it said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = cli.main(["report", *options, self.page])
        return status, said.getvalue()

    def test_a_region_is_filled_from_its_file_and_the_rest_stays(self):
        self.rows("mix.jsonl", sample_rows.every_kind())
        self.write("Before.\n\n<!-- report: mix mix.jsonl -->\nold\n<!-- end -->\n\nAfter.\n")
        self.assertEqual(self.report()[0], 0)
        text = self.read()
        self.assertRegex(text, r"^Before\.\n\n<!-- report: mix mix.jsonl -->\n\| configuration \|")
        self.assertIn("Raw: `mix.jsonl`, Imaginary GPU, driver 580.0, commit abc.\n<!-- end -->\n\nAfter.\n", text)
        self.assertNotIn("old", text)

    def test_check_fails_until_the_document_is_filled_and_when_its_file_changes(self):
        self.rows("programs.jsonl", PROGRAMS)
        self.write("<!-- report: programs programs.jsonl -->\n<!-- end -->\n")
        status, said = self.report("--check")
        self.assertEqual(status, 1)
        self.assertIn("programs of programs.jsonl", said)
        self.assertEqual(self.read().count("\n"), 2)
        self.assertEqual(self.report()[0], 0)
        self.assertEqual(self.report("--check"), (0, ""))
        self.rows("programs.jsonl", PROGRAMS + [run("quick", "eight", 1.0, verdict="right")])
        self.assertEqual(self.report("--check")[0], 1)

    def test_marks_may_go_over_lines_and_name_several_files(self):
        self.rows("one.jsonl", sample_rows.every_kind(1))
        self.rows("two.jsonl", sample_rows.every_kind(2))
        self.write("<!-- report: gain-bars\n  one.jsonl\n  two.jsonl -->\n<!-- end -->\n")
        self.assertEqual(self.report()[0], 0)
        self.assertIn("| gain over one after the other | bar | abc | abc |", self.read())

    def test_what_makes_no_sense_is_refused_and_nothing_is_written(self):
        self.rows("programs.jsonl", PROGRAMS)
        for text, said in (
            ("<!-- report: nonsense programs.jsonl -->\n<!-- end -->\n", "no table of the kind nonsense"),
            ("<!-- report: mix absent.jsonl -->\n<!-- end -->\n", "no file absent.jsonl"),
            ("<!-- report: path programs.jsonl -->\n<!-- end -->\n", "is no table of programs.jsonl"),
            ("<!-- report: programs programs.jsonl -->\n", "without its beginning or its end"),
            ("<!-- report: programs programs.jsonl -->\n<!-- report: mix x -->\n<!-- end -->\n", "without its"),
        ):
            self.write(text)
            status, found = self.report()
            self.assertEqual(status, 2, text)
            self.assertIn(said, found)
            self.assertEqual(self.read(), text)

    def test_documents_and_rows_go_apart(self):
        self.rows("mix.jsonl", [])
        self.write("")
        self.assertEqual(self.report(os.path.join(self.folder, "mix.jsonl"))[0], 2)


class TableTest(unittest.TestCase):
    def test_pairs_that_miss_their_bar_are_said(self):
        found = [sample_rows.calibration(name) for name in ("fma_loop", "stream_read")]
        found += [sample_rows.solo(name, "native") for name in ("fma_loop", "stream_read", "gaussian")]
        found += [
            sample_rows.pair(("stream_read", "fma_loop"), "slate-adaptive", 150),
            sample_rows.pair(("gaussian", "fma_loop"), "slate-adaptive", 100),
        ]
        gains = document_tables.slate_gains(found)
        self.assertEqual(document_tables.gain_cell(gains, ("fma_loop", "stream_read"), 1.5), "1.333 **missed**")
        self.assertEqual(document_tables.gain_cell(gains, None, 0.98), "1.333")
        self.assertEqual(document_tables.gain_cell(gains, ("gaussian",), 1.35), "2.000")

    def test_programs_are_compared_by_their_least_times(self):
        _, lines = document_tables.programs(PROGRAMS)
        self.assertEqual(lines[0], ("cold", 2, 2, "none", "1.25", 1))
        self.assertEqual(lines[1], ("warm", 3, 2, "slow", "0.88", 1))
        self.assertEqual(document_tables.slow_programs(PROGRAMS)[1], [("slow", "1", "2.00", "1.50")])
        self.assertEqual(len(lines), 2)  # nothing ran eight at a time

    def test_calls_are_compared_by_medians_over_the_rounds(self):
        found = []
        for configuration, values in (("native", (4, 4, 9)), ("slated", (1, 2, 3))):
            copy = {"case": "to_host_pinned", "bytes": 4, "configuration": configuration}
            found += [dict(copy, median_us=each) for each in values]
        medians = document_tables.medians_of_path(found, "median_us")
        self.assertEqual(medians["to_host_pinned", 4], {"native": 4, "slated": 2})


class ResultsTest(unittest.TestCase):
    def test_the_pages_of_results_are_what_their_files_say(self):
        for page in RESULTS:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = document.run(page, check=True)
            self.assertEqual(status, 0, said.getvalue() + "run: bench/slate-bench report " + os.path.relpath(page, ROOT))

    def test_every_raw_file_is_named_by_a_page_or_the_history_and_every_named_one_is_there(self):
        pages = list(RESULTS)
        history = os.path.join(ROOT, "docs", "history")
        pages += [os.path.join(history, name) for name in os.listdir(history)]
        text = ""
        for page in pages:
            with open(page, encoding="utf-8") as file:
                text += file.read()
        named = set(re.findall(r"bench/results/([\w.-]+\.(?:jsonl|txt|csv))", text))
        self.assertEqual(named, set(os.listdir(os.path.join(ROOT, "bench", "results"))))

    def test_every_kind_of_table_is_used(self):
        used = []
        for page in RESULTS:
            with open(page, encoding="utf-8") as file:
                used += re.findall(r"<!-- report: (\S+)", file.read())
        self.assertEqual(set(used), set(document_tables.KINDS))


if __name__ == "__main__":
    unittest.main()
