"""A small run of every subcommand on sim: rows that fit the schema, results with the same bits, and a report of them.
Needs SLATE_BUILD. No time is looked at."""

import contextlib
import io
import json
import os
import shlex
import tempfile
import unittest

import fakes  # noqa: F401 (finds slate_bench)

from slate_bench import cli, rows, summary

BUILD = os.environ["SLATE_BUILD"]
DEVICE = "sim:sms=4,memory=512M"
SLATES = ["--configurations", "slate-adaptive", "slate-fifo"]


class SimTest(unittest.TestCase):
    def setUp(self):
        self.root = self.enterContext(tempfile.TemporaryDirectory())
        self.rows = os.path.join(self.root, "rows.jsonl")

    def run_once(self, command, *words):
        """The exit status of one round on sim, and what was said on stderr."""
        given = [command, "--build", BUILD, "--device", DEVICE, "--rows", self.rows, "--rounds", "1", *words]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            return cli.main(given), said.getvalue()

    def bench(self, command, *words):
        """The rows of a run by kind, but for those that say that sim has no rivals."""
        status, said = self.run_once(command, "--seconds", "0.01", *words)
        self.assertEqual(status, 0, said)
        found = rows.read([self.rows])
        self.assertEqual(rows.complaints(found), [])
        by_kind = {}
        for row in found:
            if row["command"] == command:
                by_kind.setdefault(row["kind"], []).append(row)
        return by_kind

    def test_solo(self):
        found = self.bench(
            "solo", "--programs", "sgemm", "transpose", "--configurations", "native", "slate-adaptive", "slate-fifo"
        )
        self.assertEqual(
            sorted((row["program"], row["configuration"]) for row in found["solo"]),
            [(name, slate) for name in ("sgemm", "transpose") for slate in ("slate-adaptive", "slate-fifo")],
        )
        self.assertEqual([row["configuration"] for row in found["skipped"]], ["native"])
        for name in ("sgemm", "transpose"):
            self.assertEqual(len({row["hash"] for row in found["solo"] if row["program"] == name}), 1)

    def test_pairs_and_their_report(self):
        own = "own=%s --reps {reps} --size 1000" % shlex.quote(os.path.join(BUILD, "bin", "shared", "vector_add"))
        traces = os.path.join(self.root, "traces")
        found = self.bench(
            "pairs", "--pairs", "sgemm,transpose", "sgemm,own", "--program", own, "--traces", traces, *SLATES
        )
        self.assertEqual(
            sorted((row["configuration"], row["programs"]) for row in found["pair"]),
            [(slate, ["sgemm", other]) for slate in ("slate-adaptive", "slate-fifo") for other in ("own", "transpose")],
        )
        self.assertTrue(all(row["makespan_ms"] >= max(row["times_ms"]) - 1e-6 for row in found["pair"]))
        self.assertIn("sgemm", {row["program"] for row in found["profile"]})
        self.assertEqual(
            sorted(name.rsplit(".", 2)[0] for name in os.listdir(traces)),
            ["sgemm+%s.%s" % (other, slate) for other in ("own", "transpose") for slate in SLATES[1:]],
        )
        for name in os.listdir(traces):
            with open(os.path.join(traces, name), encoding="utf-8") as file:
                kernels = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]
            self.assertEqual(len({event["pid"] for event in kernels}), 2, name)
        self.assertEqual(len(summary.best_pairs(rows.read([self.rows]))), 4)
        folder = os.path.join(self.root, "report")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(cli.main(["report", self.rows, "--out", folder]), 0)
        with open(printed.getvalue().strip(), encoding="utf-8") as page:
            self.assertIn("sgemm + transpose", page.read())
        self.assertTrue({"report.html", "heat-map.png", "figure-7.png", "summary.sqlite"} <= set(os.listdir(folder)))

    def test_mix_from_a_file(self):
        path = os.path.join(self.root, "arrivals")
        with open(path, "w") as file:
            file.write("0 sgemm\n0.01 transpose\n0.02 sgemm 0.02\n")
        found = self.bench("mix", "--file", path, "--configurations", "slate-adaptive")
        self.assertEqual(sorted(row["configuration"] for row in found["mix"]), ["one-at-a-time", "slate-adaptive"])
        for row in found["mix"]:
            self.assertEqual([job["program"] for job in row["jobs"]], ["sgemm", "transpose", "sgemm"])
            self.assertTrue(all(job["arrival_ms"] <= job["started_ms"] < job["ended_ms"] for job in row["jobs"]))
            if row["configuration"] == "one-at-a-time":
                self.assertTrue(
                    all(one["ended_ms"] <= other["started_ms"] for one, other in zip(row["jobs"], row["jobs"][1:]))
                )

    def test_overhead_has_a_cold_run_and_a_warm_one(self):
        found = self.bench("overhead", "--programs", "transpose", "--configurations", "slate-adaptive")
        self.assertEqual([row["cold"] for row in found["solo"]], [True, False])
        self.assertIn("injection", summary.overheads(rows.read([self.rows]))["transpose", "slate-adaptive"])

    def test_sweep(self):
        found = self.bench("sweep", "--programs", "stream_read")
        self.assertEqual(
            {(row["what"], row["value"]) for row in found["sweep"] if row["what"] != "workers_per_sm"},
            {("task_size", size) for size in (1, 2, 4, 8, 16, 32)} | {("sms", sms) for sms in (1, 2, 3, 4)},
        )
        workers = [row["value"] for row in found["sweep"] if row["what"] == "workers_per_sm"]
        self.assertEqual(workers, list(range(1, len(workers) + 1)))

    def test_fairness(self):
        found = self.bench("fairness", "--programs", "transpose", "--count", "3", "--configurations", "slate-timeslice")
        self.assertEqual(
            sorted((row["what"], row["count"], len(row["times_ms"])) for row in found["fairness"]),
            [("equal", 3, 3), ("weights", 2, 2)],
        )

    def test_memory(self):
        found = self.bench(
            "memory", "--part", "16M", "--swap", "96M", "--tenants", "3", "--load", "1.8", "--work-rounds", "2",
            "--exchange-seconds", "0.5",
        )
        self.assertEqual(
            sorted((row["what"], row["order"]) for row in found["memory"]),
            [("exchange", "at once"), ("gaps", "at once"), ("gaps", "one by one"), ("no-swap", "at once"),
             ("steady", "at once"), ("steady", "one by one"), ("three", "at once"), ("three", "one by one")],
        )
        for row in found["memory"]:
            self.assertEqual(row["failed"] > 0, row["what"] == "no-swap", row)

    def test_arrangements(self):
        # So short a run ends before the search does, unless that may cost what it likes.
        found = self.bench(
            "arrangements", "--pairs", "sgemm,stream_read", "--seconds", "0.05", "--search-seconds", "0.5",
            "--settings", "[scheduler]\nsearch_loss = 1.0\n",
        )
        row = found["arrangements"][0]
        self.assertLessEqual({"alone", "together", "split 2"}, set(row["ratios"]))
        self.assertEqual(row["best"], min(row["ratios"], key=row["ratios"].get))

    def test_a_program_that_no_configuration_can_start_fails_the_run(self):
        status, _ = self.run_once("solo", "--programs", "transpose", "--program", "gone=/nowhere", "--configurations",
                                  "slate-fifo")
        self.assertEqual(status, 1)
        found = rows.read([self.rows])
        self.assertEqual([row["programs"] for row in found if row["kind"] == "failure"], [["gone"]])
        self.assertEqual([row["program"] for row in found if row["kind"] == "solo"], ["transpose"])


if __name__ == "__main__":
    unittest.main()
