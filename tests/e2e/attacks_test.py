"""What one user can do to others: floods, squatters, hoarders. A second user tries each; a third one's programs have to be right
meanwhile, and root has to get in. Needs root, to be three users."""

import os
import subprocess
import unittest

from harness import ON_GPU, SLOW, SlateTestCase, binary, can_run, small_command
from hostile import ATTACKER, begin_attack, end_attack

NEIGHBOUR = 65532
SMALL = small_command("vector_add")
# Otherwise a newcomer begins in another engine when a kernel without a fence runs in the first one.
TOGETHER = ("--fence", "never")
SANITIZED = "an attack in Python cannot load slate's driver with AddressSanitizer in it"


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be three users")
class AttacksTest(SlateTestCase):
    def start_daemon(self, **keywords):
        if not can_run(NEIGHBOUR, binary("slate", "vector_add")):
            self.skipTest("other users cannot reach the build folder")
        daemon = self.daemon(**keywords)
        os.chmod(daemon.root, 0o755)
        return daemon

    def attack(self, daemon, name):
        pid, said = begin_attack(daemon, name)
        self.addCleanup(end_attack, pid)
        self.assertEqual(said, "ready\n", name)

    def check_neighbour(self, daemon, count=4):
        """Programs of another user, all at once, with the right results; and root's question."""
        running = [
            subprocess.Popen(SMALL, env=daemon.environment, user=NEIGHBOUR, group=NEIGHBOUR, extra_groups=[], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for _ in range(count)
        ]
        for process in running:
            out, err = process.communicate(timeout=60 * SLOW)
            self.assertEqual(process.returncode, 0, out + err)
            self.assertIn('"ok"', out)
        self.assertIsNotNone(daemon.status_or_none(), "root's slatectl")

    def check(self, name):
        daemon = self.start_daemon()
        self.attack(daemon, name)
        self.check_neighbour(daemon)
        return daemon

    def test_names_in_dev_shm_mean_nothing(self):
        self.check("squat")

    def test_a_flood_of_garbage_keeps_nobody_out(self):
        daemon = self.start_daemon()
        self.attack(daemon, "flood")
        self.check_neighbour(daemon, 12)

    def test_unfinished_meetings_keep_nobody_out(self):
        self.check("be_silent")

    def test_idle_sessions_keep_nobody_out(self):
        daemon = self.check("hoard_sessions")
        held = [each for each in daemon.status()["sessions"] if each["uid"] == ATTACKER]
        self.assertEqual(len(held), 256)

    def test_questions_keep_nobody_out(self):
        self.check("hoard_questions")

    def start_as(self, daemon, user, command):
        process = subprocess.Popen(command, env=daemon.environment, user=user, group=user, extra_groups=[], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def end_session(self, daemon, user, session):
        asking = self.start_as(daemon, user, [binary("slatectl"), "end", str(session)])
        _, err = asking.communicate(timeout=60 * SLOW)
        return asking.returncode, err

    def test_a_session_is_ended_by_its_user_and_by_root_only(self):
        # On a GPU nothing stops a kernel but a new engine.
        daemon = self.start_daemon(extra=["--kill-grace-seconds", "1", "--kill-stuck-engine"])
        for by in (NEIGHBOUR, 0):
            engine = daemon.engine_pid()
            program = self.start_as(daemon, NEIGHBOUR, [binary("slate", "endless")])
            self.assertEqual(program.stdout.readline(), "running\n")
            session = [each["id"] for each in daemon.status()["sessions"] if each["state"] == "serving"][0]
            code, err = self.end_session(daemon, ATTACKER, session)
            self.assertEqual((code, err), (1, "slatectl: %d is another user's\n" % session))
            self.assertIsNone(program.poll())
            self.assertEqual(self.end_session(daemon, by, session)[0], 0)
            _, err = program.communicate(timeout=60 * SLOW)
            self.assertEqual(program.returncode, 2, err)
            self.assertIn("cudaErrorDevicesUnavailable", err)
            self.assertIn("uid %d ended it with slatectl end" % by, err)
            self.assertRegex(daemon.log_text(), r"session %d \(uid %d, pid %d, endless\) ended by uid %d" %
                             (session, NEIGHBOUR, program.pid, by))
            if ON_GPU:
                daemon.wait_for(lambda: (daemon.status_or_none() or {}).get("engine", {}).get("pid", engine) not in (engine, 0), 60,
                                "the engine is not replaced")
            daemon.wait_until_idle()
            self.check_neighbour(daemon, 1)

    def run_endless(self, daemon, *arguments):
        """The attacker's program, once its kernels are on the device."""
        program = self.start_as(daemon, ATTACKER, [binary("slate", "endless"), *arguments])
        self.assertEqual(program.stdout.readline(), "running\n")
        daemon.wait_for(lambda: any(each["uid"] == ATTACKER and each.get("kernel") for each in daemon.status()["sessions"]), 60,
                        "the attacker's kernel does not run")
        return program

    def daemons_of_policies(self, *extra):
        for policy in ("adaptive", "timeslice"):
            daemon = self.start_daemon(extra=["--policy", policy, *extra])
            yield daemon
            if not ON_GPU:
                daemon.stop()

    @unittest.skipIf(ON_GPU, "the driver loads a new program's code between kernels only")
    def test_nobody_waits_for_an_endless_kernel_that_leaves_room(self):
        # Without a bound: the neighbour must not need one.
        for daemon in self.daemons_of_policies("--max-blocking-ms", "0"):
            endless = self.run_endless(daemon)
            self.check_neighbour(daemon)
            self.assertIsNone(endless.poll())
            endless.kill()
            endless.communicate()

    @unittest.skipIf(ON_GPU, "a native kernel cannot be stopped there: the engine is replaced")
    def test_an_endless_kernel_that_fills_the_device_is_ended_at_the_bound(self):
        for daemon in self.daemons_of_policies("--max-blocking-ms", "300", *TOGETHER):
            endless = self.run_endless(daemon, "4096")
            self.check_neighbour(daemon)
            _, err = endless.communicate(timeout=60 * SLOW)
            self.assertEqual(endless.returncode, 2, err)
            self.assertIn("cudaErrorLaunchTimeout", err)
            self.assertIn("it kept launches of another user waiting", err)
            self.assertIn("spin_while_zero", err)
            self.assertRegex(daemon.log_text(), "uid %d is blamed: session [0-9]+ .endless.: kept session" % ATTACKER)

    @unittest.skipIf(ON_GPU, "the driver loads a new program's code between kernels only")
    def test_a_resizable_grid_behind_an_endless_kernel_gives_way(self):
        for daemon in self.daemons_of_policies("--max-blocking-ms", "0", "--scheduler-forms-at-once"):
            endless = self.run_endless(daemon, "1", "1000000")
            self.check_neighbour(daemon)
            self.assertIsNone(endless.poll())
            endless.kill()
            endless.communicate()

    def test_a_newcomer_does_not_wait_for_an_endless_kernel_without_a_fence(self):
        daemon = self.start_daemon(extra=["--max-blocking-ms", "0"])
        engine = daemon.engine_pid()
        endless = self.run_endless(daemon)
        self.check_neighbour(daemon)
        self.assertNotEqual(daemon.engine_pid(), engine)
        another = self.start_as(daemon, ATTACKER, SMALL)
        _, err = another.communicate(timeout=60 * SLOW)
        self.assertEqual(another.returncode, 0, err)
        self.assertTrue(daemon.fence()["on"], "he is beside the neighbour")
        self.assertIsNone(endless.poll())
        self.assertEqual(daemon.status()["engine"]["restarts"], 0)
        endless.kill()
        endless.communicate()

    @unittest.skipUnless(ON_GPU, "sim stops a kernel with its session")
    def test_an_endless_kernel_on_a_gpu_costs_the_engine_and_then_nothing(self):
        for blocks in ((), ("100000",)):
            daemon = self.start_daemon(extra=["--max-blocking-ms", "1000", "--bar-after", "0", *TOGETHER])
            endless = self.run_endless(daemon, *blocks)
            self.check_neighbour(daemon, 1)
            self.assertRegex(daemon.status()["engine"]["last_fault"], "the engine was replaced because session [0-9]+ keeps session")
            _, err = endless.communicate(timeout=60 * SLOW)
            self.assertIn("cudaErrorLaunchTimeout", err)
            self.check_neighbour(daemon)

    @unittest.skipIf(ON_GPU, "a native kernel cannot be stopped there: the engine is replaced")
    def test_who_blocks_others_again_and_again_is_barred_for_a_while(self):
        daemon = self.start_daemon(extra=["--max-blocking-ms", "100", "--bar-after", "2", *TOGETHER])
        for _ in range(2):
            endless = self.run_endless(daemon, "4096")
            self.check_neighbour(daemon, 1)
            endless.communicate(timeout=60 * SLOW)
        refused = self.start_as(daemon, ATTACKER, [binary("slate", "endless")])
        _, err = refused.communicate(timeout=60 * SLOW)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("programs of uid %d are barred for" % ATTACKER, err)
        self.assertEqual([each["uid"] for each in daemon.status()["barred"]], [ATTACKER])
        self.check_neighbour(daemon, 1)
        self.assertRegex(daemon.log_text(), "uid %d is barred for 600 s after 2 incidents" % ATTACKER)

    @unittest.skipIf(SLOW > 1, SANITIZED)
    def test_who_takes_all_memory_leaves_a_reserve(self):
        daemon = self.start_daemon()
        self.attack(daemon, "take_memory")
        sessions = daemon.status()["sessions"]
        total = daemon.status()["device"]["memory_total"]
        self.assertGreater(sessions[0]["memory_used"], 0.9 * total)
        self.assertLessEqual(sessions[0]["memory_used"], 0.94 * total)
        self.check_neighbour(daemon, 1)

    @unittest.skipIf(SLOW > 1, SANITIZED)
    def test_local_memory_is_charged_to_the_user_who_makes_the_driver_take_it(self):
        daemon = self.start_daemon()
        before = daemon.status()["device"]["memory_free"]
        self.attack(daemon, "take_local_memory")
        status = daemon.status()
        charged = [each["memory_used"] for each in status["sessions"] if each["uid"] == ATTACKER]
        # A little more is the session's allocation, and the engine's own.
        self.assertGreaterEqual(sum(charged) + (64 << 20), before - status["device"]["memory_free"])
        self.assertLessEqual(sum(charged), 0.94 * status["device"]["memory_total"])
        self.check_neighbour(daemon)


if __name__ == "__main__":
    unittest.main()
