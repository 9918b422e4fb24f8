"""The report, from rows of every kind and from hardly any: that the page is whole, and its pictures show something."""

import base64
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import fakes  # noqa: F401 (finds slate_bench)
import sample_rows

from slate_bench import report

PICTURES = [
    "figure-1",
    "figure-5",
    "figure-6",
    "figure-7",
    "heat-map",
    "heat-map-mps",
    "heat-map-static",
    "mix",
    "ratios",
    "workers",
]


class Outline(html.parser.HTMLParser):
    """Headings, tables with their cells, pictures, and whether every tag that needs it was closed."""

    def __init__(self):
        super().__init__()
        self.open, self.headings, self.rows, self.pictures, self.text = [], [], [], [], ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "img":
            self.pictures.append((attributes["alt"], attributes["src"]))
        elif tag not in ("meta", "!doctype"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1
        if tag == "script" or "http" in str(attributes):
            raise AssertionError("not self-contained: %s %s" % (tag, attributes))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


class ReportTest(unittest.TestCase):
    def build(self, found):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(report.build(found, self.folder), encoding="utf-8") as file:
            self.page = file.read()
        outline = Outline()
        outline.feed(self.page)
        self.assertEqual(outline.open, [])
        return outline

    def test_every_figure_and_table_of_the_papers_is_there(self):
        outline = self.build(sample_rows.every_kind())
        self.assertEqual(sorted(name for name, _ in outline.pictures), PICTURES)
        for words in ("Figure 7", "Table II", "Table III", "Table IV", "Table V", "Figure 6", "Figures 1 and 5"):
            self.assertTrue(any(words in heading for heading in outline.headings), words)
        self.assertIn("ANTT", outline.text)
        self.assertNotIn("Not measured", outline.text.split("What came out")[1].split("Not measured, and failed")[0])
        self.assertTrue(all(count > 1 for count in outline.rows))

    def test_pictures_are_in_the_page_and_beside_it_and_not_blank(self):
        import io

        import matplotlib.image

        for name, source in self.build(sample_rows.every_kind()).pictures:
            data = base64.b64decode(source.removeprefix("data:image/png;base64,"))
            with open(os.path.join(self.folder, name + ".png"), "rb") as file:
                self.assertEqual(file.read(), data)
            pixels = matplotlib.image.imread(io.BytesIO(data))
            self.assertGreater(min(pixels.shape[:2]), 200, name)
            self.assertGreater((pixels[:, :, :3].min(axis=2) < 0.9).mean(), 0.01, name)  # ink

    def test_what_programs_said_is_escaped(self):
        self.build(sample_rows.every_kind())
        self.assertIn("ended with 2: &lt;no&gt;", self.page)
        self.assertNotIn("<no>", self.page)

    def test_hardly_any_rows_make_a_page_that_says_so(self):
        outline = self.build([sample_rows.row("skipped", configuration="mps", reason="no GPU")])
        self.assertEqual(outline.pictures, [])
        self.assertGreaterEqual(len(re.findall("[Nn]ot measured", outline.text)), 10)
        self.assertIn("mps was left out: no GPU.", outline.text)

    def test_one_pair_on_sim_is_enough_for_the_pair_figures(self):
        found = [
            sample_rows.calibration("sgemm"),
            sample_rows.solo("sgemm", "native"),
            sample_rows.pair(("sgemm", "sgemm"), "slate-fifo", 150),
        ]
        outline = self.build(found)
        self.assertEqual(sorted(name for name, _ in outline.pictures), ["figure-7", "heat-map"])
        self.assertIn("Pairs were not measured under slate-adaptive.", outline.text)


class CopiesPlotTest(unittest.TestCase):
    SCRIPT = os.path.join(os.path.dirname(__file__), "../../../bench/copies_plot.py")

    def plot(self, configurations):
        """Exit code, what it said, and the picture's bytes, if there is one."""
        with tempfile.TemporaryDirectory() as folder:
            rows, picture = os.path.join(folder, "rows.jsonl"), os.path.join(folder, "copies.png")
            with open(rows, "w") as out:
                for size in (4, 1024):
                    for number, configuration in enumerate(configurations):
                        row = {"case": "to_host_pinned", "bytes": size, "median_us": 6 + number}
                        out.write(json.dumps(dict(row, configuration=configuration)) + "\n")
                out.write(json.dumps({"case": "launch_call", "median_us": 1, "configuration": "native"}) + "\n")
            done = subprocess.run([sys.executable, self.SCRIPT, rows, picture], capture_output=True, text=True)
            image = b""
            if os.path.exists(picture):
                with open(picture, "rb") as file:
                    image = file.read()
            return done.returncode, done.stderr, image

    def test_copies_that_were_measured_both_ways_are_drawn(self):
        code, _, image = self.plot(["native", "slated"])
        self.assertEqual(code, 0)
        self.assertTrue(image.startswith(b"\x89PNG"))

    def test_without_a_native_column_it_says_so(self):
        code, said, image = self.plot(["slated"])
        self.assertNotEqual(code, 0)
        self.assertIn("measured both ways", said)
        self.assertEqual(image, b"")


if __name__ == "__main__":
    unittest.main()
