"""What goes wrong, goes wrong for one program only and says so: no daemon, a killed daemon or client, wild
addresses, garbage, CUDA's error codes."""

import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import DEVICE, ON_GPU, SLOW, SlateTestCase, binary, children, native, processor_seconds, program_command

API_ERRORS_ON_H200 = os.path.join(os.path.dirname(__file__), "../../kernels/faults/api_errors.expected")


class FailuresTest(SlateTestCase):
    def assert_next_program_is_right(self, daemon):
        code, out, err = daemon.run([binary("slate", "vector_add"), "--size", "100000"])
        self.assertEqual(code, 0, out + err)

    def test_without_a_daemon_the_program_gets_an_initialization_error_at_once(self):
        with tempfile.TemporaryDirectory() as empty:
            started = time.time()
            reply = subprocess.run(program_command("vector_add"), capture_output=True, text=True,
                                   env=dict(os.environ, SLATE_RUNTIME_DIR=empty), timeout=60)
            self.assertLess(time.time() - started, 5 * SLOW)
            self.assertNotEqual(reply.returncode, 0)
            self.assertIn("cudaErrorInitializationError", reply.stderr)
            self.assertIn("slated --runtime-dir", reply.stderr)

    def test_wild_write_ends_its_own_session_only(self):
        daemon = self.daemon()
        for how in ("slate", "shared") * 3:
            command = [binary(how, "wild_write")]
            if how == "shared":
                command = [binary("slatectl"), "run", "--"] + command
            code, out, err = daemon.run(command)
            self.assertEqual(code, 0, out + err)
            self.assertIn("cudaErrorIllegalAddress", out)
            started = time.time()
            self.assert_next_program_is_right(daemon)
            print("next program right %.2f s after the fault" % (time.time() - started))
        daemon.wait_until_idle()
        state = daemon.status()
        self.assertEqual(state["totals"]["faults"], 6)
        daemon.stop()

    def test_a_fault_is_reported_in_every_form(self):
        for form in ("native", "worker", "slice"):
            with self.subTest(form=form):
                daemon = self.daemon(extra=("--form", form))
                code, out, err = daemon.run([binary("slate", "wild_write")])
                self.assertEqual(code, 0, out + err)
                self.assertIn("cudaDeviceSynchronize: cudaErrorIllegalAddress", out)
                self.assert_next_program_is_right(daemon)
                daemon.stop()

    @unittest.skipIf(ON_GPU, "on a GPU without fences a fault takes the engine with it")
    def test_a_fault_does_not_disturb_a_neighbour_on_sim(self):
        daemon = self.daemon()
        neighbour = daemon.start(program_command("sgemm", extra=["--reps", "3"]))
        code, out, err = daemon.run([binary("slate", "wild_write")])
        self.assertEqual(code, 0, out + err)
        out, err = neighbour.communicate(timeout=120 * SLOW)
        self.assertEqual(neighbour.returncode, 0, out + err)
        daemon.stop()

    def kill_a_client(self, daemon):
        """While it launches kernels; its session is over then."""
        victim = daemon.start([binary("slate", "endless")] if not ON_GPU
                              else program_command("sgemm", extra=["--reps", "2000", "--no-check"]))
        daemon.wait_for(lambda: any(s["launches"] > 0 for s in daemon.status()["sessions"]), 20,
                        "the victim launches nothing")
        victim.kill()
        victim.communicate()
        daemon.wait_for(lambda: not daemon.status()["sessions"], 30, "the dead client's session stays")

    def test_a_killed_client_leaves_nothing(self):
        daemon = self.daemon(extra=["--kill-grace-seconds", "20"])
        self.assert_leaves_nothing(daemon, lambda: self.kill_a_client(daemon))
        self.assertEqual(daemon.names_left(), [])
        with open("/proc/%d/status" % daemon.engine_pid()) as file:
            threads = [int(line.split()[1]) for line in file if line.startswith("Threads:")][0]
        self.assert_next_program_is_right(daemon)
        daemon.wait_until_idle()
        with open("/proc/%d/status" % daemon.engine_pid()) as file:
            self.assertEqual([int(line.split()[1]) for line in file if line.startswith("Threads:")][0], threads)
        daemon.stop()

    def test_calls_fail_within_a_second_of_the_daemons_death(self):
        daemon = self.daemon()
        program = daemon.start(program_command("vector_add", extra=["--reps", "1000000", "--no-check"]))
        daemon.wait_for(lambda: any(s["launches"] > 0 for s in daemon.status()["sessions"]), 20,
                        "the program launches nothing")
        daemon.process.kill()
        started = time.time()
        out, err = program.communicate(timeout=30 * SLOW)
        self.assertLess(time.time() - started, 2 * SLOW)
        self.assertEqual(program.returncode, 2, out + err)
        self.assertIn("cudaError", err)

    def test_a_new_daemon_clears_what_a_killed_one_left(self):
        daemon = self.daemon()
        program = daemon.start([binary("slate", "endless")] if not ON_GPU else program_command("sgemm"))
        daemon.wait_for(lambda: daemon.status()["sessions"], 20, "no session")
        daemon.process.kill()
        daemon.process.wait()
        program.communicate(timeout=30 * SLOW)
        second = subprocess.Popen(
            [binary("slated"), "--device", DEVICE, "--runtime-dir", daemon.runtime], env=daemon.environment
        )
        try:
            deadline = time.time() + 20 * SLOW
            while daemon.status_or_none() is None and time.time() < deadline:
                time.sleep(0.05)
            self.assert_next_program_is_right(daemon)
        finally:
            second.send_signal(signal.SIGTERM)
            self.assertEqual(second.wait(timeout=20 * SLOW), 0)
        self.assertFalse(os.path.exists(daemon.runtime))

    def test_sessions_are_told_when_slated_stops(self):
        daemon = self.daemon()
        program = daemon.start(program_command("vector_add", extra=["--reps", "1000000", "--no-check"]))
        daemon.wait_for(lambda: any(s["launches"] > 0 for s in daemon.status()["sessions"]), 20, "no launch")
        daemon.stop()
        out, err = program.communicate(timeout=30 * SLOW)
        self.assertEqual(program.returncode, 2, out + err)

    def test_an_idle_slated_uses_no_processor(self):
        daemon = self.daemon()
        daemon.wait_until_idle()
        pids = [daemon.process.pid] + children(daemon.process.pid)
        before = processor_seconds(pids)
        time.sleep(2)
        self.assertLess(processor_seconds(pids) - before, 0.2)
        daemon.stop()

    def test_an_engine_killed_is_replaced(self):
        daemon = self.daemon()
        for restarts in range(1, 6):
            before = daemon.engine_pid()
            os.kill(before, signal.SIGKILL)
            # At once: a program that arrives at a dying engine must be served by the next one.
            self.assert_next_program_is_right(daemon)
            self.assertNotEqual(daemon.engine_pid(), before)
            self.assertEqual(daemon.status()["engine"]["restarts"], restarts)
        daemon.stop()

    def end_of_an_unchecked_program(self, daemon, end):
        """What slate says to a program that checks nothing, when `end` ends its session. The program ends well."""
        program = daemon.start([binary("slate", "unchecked"), "3"])
        daemon.wait_for(lambda: any(s["launches"] > 0 for s in daemon.status()["sessions"]), 20, "no launch")
        end()
        out, err = program.communicate(timeout=30 * SLOW)
        self.assertEqual((program.returncode, out), (0, "done\n"), err)
        lines = [line for line in err.splitlines() if line.startswith("slate: ")]
        self.assertEqual(len(lines), 1, err)
        self.assertIn("the session of this program has ended", lines[0])
        return lines[0]

    def test_a_program_that_checks_nothing_is_told_once_that_its_session_ended(self):
        daemon = self.daemon()
        self.assertIn("Unavailable", self.end_of_an_unchecked_program(daemon, daemon.process.kill))

    def test_reads_beside_ones_memory_find_zeros_or_what_the_program_wrote_there(self):
        daemon = self.daemon()
        programs = [(value, daemon.start([binary("slate", "beside_memory"), str(value)])) for value in range(1, 7)]
        for value, program in programs:
            out, err = program.communicate(timeout=60 * SLOW)
            self.assertEqual(program.returncode, 0, out + err)
            self.assertEqual(out, "0 0 %d %d\n" % (value, value), err)
        daemon.stop()

    def test_garbage_from_visitors_disturbs_nobody(self):
        daemon = self.daemon()
        program = daemon.start(program_command("reduction", extra=["--reps", "5"]))
        for size in (1, 100, 4096, 50000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as visitor:
                visitor.connect(os.path.join(daemon.runtime, "slated.sock"))
                visitor.send(os.urandom(size))
        out, err = program.communicate(timeout=60 * SLOW)
        self.assertEqual(program.returncode, 0, out + err)
        self.assert_next_program_is_right(daemon)
        daemon.stop()

    def test_every_api_error_is_the_one_that_cuda_gives(self):
        daemon = self.daemon()
        code, out, err = daemon.run([binary("slate", "api_errors")])
        self.assertEqual(code, 0, out + err)
        if ON_GPU:
            native_code, expected, _ = native([binary("shared", "api_errors")])
            self.assertEqual(native_code, 0)
        else:
            with open(API_ERRORS_ON_H200) as file:
                expected = file.read()
        self.assertEqual(out.splitlines(), expected.splitlines())
        daemon.stop()


class SlatectlTest(SlateTestCase):
    def test_run_passes_exit_codes_and_arguments_on(self):
        daemon = self.daemon()
        code, out, _ = daemon.run([binary("slatectl"), "run", "--", "/bin/sh", "-c", "echo $1; exit 7", "x", "a b"])
        self.assertEqual((code, out), (7, "a b\n"))
        daemon.stop()

    def test_run_of_a_missing_program_is_127(self):
        daemon = self.daemon()
        code, _, err = daemon.run([binary("slatectl"), "run", "--", "/no/such/program"])
        self.assertEqual(code, 127)
        self.assertIn("/no/such/program", err)
        daemon.stop()

    def test_status_without_a_daemon_says_so(self):
        with tempfile.TemporaryDirectory() as empty:
            reply = subprocess.run([binary("slatectl"), "status", "--runtime-dir", empty], capture_output=True, text=True)
            self.assertNotEqual(reply.returncode, 0)
            self.assertIn("slated", reply.stderr)

    def test_output_that_gets_nowhere_is_a_failure(self):
        daemon = self.daemon()
        for words in (["status"], ["status", "--json"], ["profile"], ["trace", "--out", "-"]):
            with open("/dev/full", "w") as full:
                reply = subprocess.run(
                    [binary("slatectl"), *words], env=daemon.environment, stdout=full, stderr=subprocess.PIPE, text=True
                )
            self.assertEqual((words, reply.returncode), (words, 1))
            self.assertIn("standard output", reply.stderr)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
