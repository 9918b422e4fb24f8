"""What slate-bench does with MPS, green contexts and native programs, followed with fakes."""

import contextlib
import glob
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import fakes

from slate_bench import cli, rows
from slate_bench.daemons import DaemonError, alive
from slate_bench.runner import RunFailed

RIVALS = ["native", "mps", "mps-split", "green"]


class ControlTest(unittest.TestCase):
    def setUp(self):
        self.root = self.enterContext(tempfile.TemporaryDirectory())
        self.build, tools = fakes.fake_build(self.root, ["sgemm", "transpose"])
        self.rows = os.path.join(self.root, "rows.jsonl")
        self.options = ["--build", self.build, "--device", "cuda", "--rows", self.rows]
        self.log = os.path.join(self.root, "log")
        self.environment = {"PATH": tools + ":" + os.environ["PATH"], "FAKE_LOG": self.log, "TMPDIR": self.root}
        self.enterContext(mock.patch.dict(os.environ, self.environment))
        self.enterContext(mock.patch.object(tempfile, "tempdir", self.root))

    def bench(self, *words):
        """Exit status and rows of a run."""
        command = [words[0], *self.options, "--seconds", "0.01", *words[1:]]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = cli.main(command)
        return status, rows.read([self.rows])

    def logged(self):
        with open(self.log) as lines:
            return [json.loads(line) for line in lines]

    def left_behind(self):
        return [path for path in os.listdir(self.root) if path.startswith("slate-bench")]

    def test_every_rival_measures_the_pair_by_every_split(self):
        status, found = self.bench("pairs", "--pairs", "sgemm,transpose", "--rounds", "2", "--configurations", *RIVALS)
        self.assertEqual(status, 0, [row for row in found if row["kind"] == "failure"])
        pairs = [row for row in found if row["kind"] == "pair"]
        self.assertEqual(
            sorted((row["configuration"], tuple(row["split"] or ())) for row in pairs),
            sorted(
                2 * [("native", ()), ("mps", ())]
                + 2 * [(name, split) for name in ("mps-split", "green") for split in ((25, 75), (50, 50), (75, 25))]
            ),
        )
        self.assertEqual(
            {tuple(row["sms"]) for row in pairs if row["configuration"] == "green"}, {(33, 99), (66, 66), (99, 33)}
        )
        self.assertEqual(len([row for row in found if row["kind"] == "solo"]), 4)
        self.assertEqual(rows.complaints(found), [])

    def test_times_alone_are_native_even_where_native_is_not_measured(self):
        _, found = self.bench("pairs", "--pairs", "sgemm,sgemm", "--rounds", "1", "--configurations", "mps")
        self.assertEqual({row["configuration"] for row in found if row["kind"] in ("calibration", "solo")}, {"native"})
        self.assertEqual({row["configuration"] for row in found if row["kind"] == "pair"}, {"mps"})

    def test_percentages_go_to_the_program_that_they_are_meant_for(self):
        self.bench(
            "pairs",
            "--pairs",
            "sgemm,transpose",
            "--rounds",
            "1",
            "--configurations",
            "native",
            "mps-split",
            "--splits",
            "30/70",
        )
        shown = {
            (line["program"], line["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
            for line in self.logged()
            if "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" in line
        }
        self.assertEqual(shown, {("sgemm", "30"), ("transpose", "70")})

    def test_native_programs_do_not_find_a_daemon_of_the_caller(self):
        with mock.patch.dict(os.environ, {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/others"}):
            words = ["pairs", "--pairs", "sgemm,sgemm", "--rounds", "1", "--configurations", "mps", "green"]
            self.assertEqual(self.bench(*words)[0], 0)
        folders = {os.path.basename(os.path.dirname(line["CUDA_MPS_PIPE_DIRECTORY"] + "/")) for line in self.logged()}
        # Natively and in green contexts an empty one: without any, programs would look in the usual place.
        self.assertEqual(len(folders - {"pipe"}), 2)
        self.assertTrue(all(folder.startswith("slate-bench-no-mps-") for folder in folders - {"pipe"}))
        self.assertEqual(self.left_behind(), [])

    def test_mps_is_stopped_and_its_directory_removed(self):
        for behaviour in ("", "stubborn"):
            with mock.patch.dict(os.environ, {"FAKE_MPS": behaviour}), mock.patch("slate_bench.daemons.QUIT_S", 0.2):
                self.bench("solo", "--programs", "sgemm", "--rounds", "1", "--configurations", "native", "mps")
            self.assertEqual(self.left_behind(), [])
            self.assertFalse(self.sleepers(), behaviour)

    def sleepers(self):
        """Fake MPS daemons that still run."""
        found = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            pid = int(path.split("/")[2])
            with contextlib.suppress(OSError), open(path, "rb") as file:
                if self.root.encode() in file.read() and pid != os.getpid() and alive(pid):
                    found.append(pid)
        return found

    def test_programs_that_ran_past_mps_are_a_failure_and_no_result(self):
        with mock.patch.dict(os.environ, {"FAKE_MPS": "serverless"}):
            status, found = self.bench(
                "solo", "--programs", "sgemm", "--rounds", "1", "--configurations", "native", "mps"
            )
        self.assertEqual(status, 1)
        self.assertEqual({row["configuration"] for row in found if row["kind"] == "solo"}, {"native"})
        failures = [row for row in found if row["kind"] == "failure"]
        self.assertIn("past MPS", failures[0]["message"])
        self.assertEqual(rows.complaints(found), [])

    def test_pairs_that_are_not_clients_of_mps_are_a_failure_before_they_start(self):
        with mock.patch.dict(os.environ, {"FAKE_MPS": "missed"}):
            words = ["pairs", "--pairs", "sgemm,sgemm", "--rounds", "1", "--configurations", "native", "mps"]
            status, found = self.bench(*words)
        self.assertEqual(status, 1)
        self.assertEqual({row["configuration"] for row in found if row["kind"] == "pair"}, {"native"})
        self.assertIn("past MPS", self.failures(found)[0][-1])

    def test_a_mix_runs_in_every_configuration_and_one_at_a_time(self):
        words = ["mix", "--programs", "sgemm", "transpose", "--arrivals", "4", "--rounds", "1"]
        status, found = self.bench(*words, "--configurations", "native", "mps", "green")
        self.assertEqual(status, 0)
        mixes = {row["configuration"]: row["jobs"] for row in found if row["kind"] == "mix"}
        self.assertEqual(sorted(mixes), ["mps", "native", "one-at-a-time"])
        self.assertTrue(all(len(jobs) == 4 for jobs in mixes.values()))
        self.assertEqual(rows.complaints(found), [])

    def test_a_mix_that_ran_past_mps_is_a_failure_too(self):
        with mock.patch("slate_bench.configurations.MpsConfiguration.verify", side_effect=DaemonError("past MPS")):
            words = ["mix", "--programs", "sgemm", "--arrivals", "2", "--rounds", "1"]
            status, found = self.bench(*words, "--configurations", "native", "mps")
        self.assertEqual(status, 1)
        self.assertNotIn("mps", {row["configuration"] for row in found if row["kind"] == "mix"})

    def failures(self, found):
        return [
            (row["configuration"], row["programs"], row["split"], row["message"])
            for row in found
            if row["kind"] == "failure"
        ]

    def test_a_pair_with_a_wrong_result_is_a_failure_and_no_gain(self):
        with mock.patch.dict(os.environ, {"FAKE_WRONG": "transpose CUDA_MPS_ACTIVE_THREAD_PERCENTAGE 75"}):
            words = ["pairs", "--pairs", "sgemm,transpose", "--rounds", "1", "--configurations", "native", "mps-split"]
            status, found = self.bench(*words)
        self.assertEqual(status, 1)
        message = "wrong results: transpose 0000000000000000 instead of 0123456789abcdef"
        self.assertEqual(self.failures(found), [("mps-split", ["sgemm", "transpose"], [25, 75], message)])
        pairs = [(row["configuration"], row["split"], row["hashes"]) for row in found if row["kind"] == "pair"]
        right = ["0123456789abcdef"] * 2
        self.assertCountEqual(
            pairs, [("native", None, right), ("mps-split", [50, 50], right), ("mps-split", [75, 25], right)]
        )
        self.assertEqual(rows.complaints(found), [])

    def test_a_program_whose_result_is_wrong_alone_is_left_out_there(self):
        with mock.patch.dict(os.environ, {"FAKE_WRONG": "sgemm CUDA_MPS_PIPE_DIRECTORY slate-bench-mps"}):
            words = ["fairness", "--programs", "sgemm", "--count", "2", "--rounds", "1", "--configurations"]
            status, found = self.bench(*words, "native", "mps")
        self.assertEqual(status, 1)
        self.assertEqual([name for name, *_ in self.failures(found)], ["mps"])
        fair = [row for row in found if row["kind"] == "fairness"]
        self.assertEqual([(row["configuration"], len(row["hashes"])) for row in fair], [("native", 2)])
        self.assertEqual(rows.complaints(found), [])

    def test_a_mix_with_a_wrong_result_is_a_failure(self):
        with mock.patch.dict(os.environ, {"FAKE_WRONG": "sgemm CUDA_MPS_PIPE_DIRECTORY slate-bench-mps"}):
            words = ["mix", "--programs", "sgemm", "transpose", "--arrivals", "4", "--rounds", "1"]
            status, found = self.bench(*words, "--configurations", "native", "mps")
        self.assertEqual(status, 1)
        self.assertIn("wrong results: sgemm", self.failures(found)[-1][-1])
        mixes = {row["configuration"]: row["jobs"] for row in found if row["kind"] == "mix"}
        self.assertEqual(sorted(mixes), ["native", "one-at-a-time"])
        self.assertTrue(all(job["hash"] == "0123456789abcdef" for jobs in mixes.values() for job in jobs))
        self.assertEqual(rows.complaints(found), [])

    def test_an_mps_that_does_not_start_is_said(self):
        with mock.patch.dict(os.environ, {"FAKE_MPS": "refuses"}):
            status, found = self.bench(
                "solo", "--programs", "sgemm", "--rounds", "1", "--configurations", "native", "mps"
            )
        self.assertEqual(status, 1)
        self.assertTrue(any("Cannot find MPS" in row.get("message", "") for row in found))

    def test_a_machine_without_mps_says_so_and_measures_the_rest(self):
        with mock.patch("shutil.which", return_value=None):
            status, found = self.bench(
                "solo", "--programs", "sgemm", "--rounds", "1", "--configurations", "native", "mps"
            )
        self.assertEqual(status, 0)
        self.assertEqual([row["configuration"] for row in found if row["kind"] == "skipped"], ["mps"])

    def test_a_program_that_fails_is_dropped_and_said(self):
        with mock.patch.dict(os.environ, {"FAKE_FAILING": "transpose"}):
            status, found = self.bench(
                "pairs", "--programs", "sgemm", "transpose", "--rounds", "1", "--configurations", "native"
            )
        self.assertEqual(status, 1)
        self.assertEqual([row["programs"] for row in found if row["kind"] == "pair"], [["sgemm", "sgemm"]])
        self.assertIn("no such kernel image", [row for row in found if row["kind"] == "failure"][0]["message"])

    def test_a_program_that_fails_in_one_configuration_is_left_out_there_alone(self):
        with mock.patch(
            "slate_bench.configurations.GreenConfiguration.commands", side_effect=RunFailed("no green light")
        ):
            status, found = self.bench(
                "pairs", "--pairs", "sgemm,sgemm", "--rounds", "4", "--configurations", "green", "native"
            )
        self.assertEqual(status, 1)
        self.assertEqual([row["configuration"] for row in found if row["kind"] == "pair"], ["native"] * 4)
        self.assertEqual([row["message"] for row in found if row["kind"] == "failure"], ["no green light"])

    def test_own_programs_are_repeated_and_timed_as_processes(self):
        own = "own=%s -c 'import time; time.sleep(0.002 * {reps})'" % sys.executable
        status, found = self.bench(
            "pairs", "--program", own, "--programs", "sgemm", "--rounds", "1", "--configurations", "native", "green"
        )
        self.assertEqual(status, 0)
        pairs = [row for row in found if row["kind"] == "pair"]
        self.assertEqual(
            sorted((row["configuration"], row["programs"]) for row in pairs),
            [("native", ["own", "own"]), ("native", ["sgemm", "own"])],
        )
        self.assertEqual(rows.complaints(found), [])

    def test_two_of_the_same_in_one_process_wait_at_barriers_of_their_own(self):
        self.bench(
            "pairs",
            "--pairs",
            "sgemm,sgemm",
            "--rounds",
            "1",
            "--configurations",
            "native",
            "green",
            "--splits",
            "50/50",
        )
        barriers = [line["barrier"] for line in self.logged()]
        self.assertEqual(len(barriers), len(set(barriers)))

    def test_the_time_limit_ends_the_run_and_says_what_is_left_out(self):
        status, found = self.bench(
            "pairs",
            "--pairs",
            "sgemm,transpose",
            "--rounds",
            "1000",
            "--max-minutes",
            "0.03",
            "--configurations",
            "native",
            "green",
        )
        self.assertEqual(status, 3)
        self.assertRegex([row for row in found if row["kind"] == "left_out"][0]["what"], r"^\d+ of 6000 runs")
        begun = {row["round"] for row in found if row["kind"] == "pair"}
        pairs = [(row["round"], row["configuration"]) for row in found if row["kind"] == "pair"]
        self.assertTrue(begun)
        for number in begun:  # what was begun was finished: natively, and three splits
            self.assertEqual((pairs.count((number, "native")), pairs.count((number, "green"))), (1, 3))
        self.assertEqual(rows.complaints(found), [])

    def test_an_interrupt_leaves_nothing_behind(self):
        command = [
            sys.executable,
            os.path.join(fakes.BENCH, "slate-bench"),
            "pairs",
            *self.options,
            "--pairs",
            "sgemm,transpose",
            "--rounds",
            "1000",
            "--seconds",
            "0.05",
            "--configurations",
            "native",
            "mps",
        ]
        process = subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.rows) or not any(row["kind"] == "pair" for row in rows.read([self.rows])):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        self.assertIn("interrupted", process.communicate(timeout=30)[1])
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.left_behind(), [])
        # Whoever was told to end takes a moment on a busy machine.
        limit = time.monotonic() + 10
        while self.sleepers() and time.monotonic() < limit:
            time.sleep(0.05)
        self.assertEqual(self.sleepers(), [])
        self.assertEqual(rows.complaints(rows.read([self.rows])), [])


if __name__ == "__main__":
    unittest.main()
