"""Engines that die, and programs that go on in the next one: after a kill, after the faults of others' kernels, and when
nobody knows whose kernel it was. The device is lost at a fault, as a GPU is."""

import os
import re
import signal
import time
import unittest

from harness import DEVICE, ON_GPU, SLOW, binary
from victims import ALL_FAULTS, FAULTS, KeptVariables, VictimTestCase, running

# On sim a fault ends its stream only, unless one asks for more.
LOST = DEVICE if ON_GPU else DEVICE + ",fault=device"
SECONDS = 8 if ON_GPU else 4


class RecoveryTest(VictimTestCase):
    def wait_until_served(self, daemon, before, victim):
        """By another engine, for a while, or until it has ended: on a busy machine its time is soon over."""
        def served():
            now = daemon.status()
            return now["engine"]["pid"] != before and (running(daemon) > 0 or not victim.runs())
        daemon.wait_for(served, 30, "the session does not go on")

    def kill_engines(self, daemon, program, most):
        """Kills so many engines while the program runs. Returns how many it were."""
        kills = 0
        while program.runs() and kills < most:
            before = daemon.engine_pid()
            os.kill(before, signal.SIGKILL)
            kills += 1
            self.wait_until_served(daemon, before, program)
        return kills

    def offend(self, daemon, how):
        """Runs a program that faults, which hears of its own error only."""
        code, out, err = daemon.run([binary("slate", "offender"), how])
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out.strip().split("\n")[-1], "%s: %s" % (how, ALL_FAULTS[how]), err)

    def test_a_program_goes_on_when_its_engine_is_killed(self):
        daemon = self.daemon(device=LOST)
        victim, = self.start_victims(daemon, 1, SECONDS)
        kills = self.kill_engines(daemon, victim, 4)
        self.assert_right(daemon, victim)
        self.assertEqual(daemon.status()["engine"]["restarts"], kills)
        daemon.stop()

    def test_programs_with_variables_go_on_when_their_engine_is_killed(self):
        for program in (binary("slate", "kept_variables"),), (binary("slatectl"), "run", "--", binary("static", "kept_variables")):
            for extra in (), ("--fence", "always"):
                with self.subTest(program=program, extra=extra):
                    daemon = self.daemon(device=LOST, extra=extra)
                    variables = KeptVariables(daemon, SECONDS, "again", program=program)
                    kills = self.kill_engines(daemon, variables, 3)
                    self.assertEqual(variables.complaint(), "", daemon.log_text()[-3000:])
                    self.assertEqual(daemon.status()["engine"]["restarts"], kills)
                    daemon.stop()

    def test_the_memory_of_a_spare_engine_is_shown(self):
        daemon = self.daemon(device=LOST, extra=("--spare-engine", "always"))
        daemon.wait_for(lambda: daemon.status()["engine"]["spares"], 60, "no spare engine is ready")
        spare_bytes = daemon.status()["engine"]["spare_bytes"]
        if ON_GPU:
            self.assertGreater(spare_bytes, 100 << 20, "as the driver's management library has it")
            self.assertLess(spare_bytes, 4 << 30)
        else:
            self.assertIsNone(spare_bytes)
        daemon.stop()

    def test_the_faults_of_another_program_cost_nothing(self):
        daemon = self.daemon(device=LOST, extra=("--spare-engine", "always", "--audit"))
        victims = self.start_victims(daemon, 2, SECONDS)
        sessions = [s["id"] for s in daemon.status()["sessions"]]
        faults = 0
        while victims[0].runs():
            for how in FAULTS:
                self.offend(daemon, how)
                faults += 1
            time.sleep(0.1)
        for victim in victims:
            self.assert_right(daemon, victim)
        self.assertGreaterEqual(daemon.status()["engine"]["restarts"], 1)
        self.assertGreaterEqual(faults, len(FAULTS))
        for session in sessions:
            lines = re.findall(r"session %d \(.*\) (began|goes on in the next engine)" % session, daemon.log_text())
            self.assertEqual(lines.count("began"), 1, "it goes on each time after")
            self.assertGreater(len(lines), 1)
        daemon.stop()

    def test_of_several_suspects_only_the_offender_is_ended(self):
        """With much work of others in flight the device does not say whose kernel faulted."""
        daemon = self.daemon(device=LOST)
        victims = self.start_victims(daemon, 3, SECONDS, 4)
        for _ in range(3):
            self.offend(daemon, "wild")
        for victim in victims:
            self.assert_right(daemon, victim)
        daemon.stop()

    def test_behind_the_fence_one_engine_is_lost_for_each_fault(self):
        """However many kernels are in flight: only those without a fence are suspects."""
        daemon = self.daemon(device=LOST, extra=("--fence", "always"))
        victims = self.start_victims(daemon, 3, SECONDS, 4)
        faults = 3
        for _ in range(faults):
            self.offend(daemon, "stack")
        for victim in victims:
            self.assert_right(daemon, victim)
        self.assertEqual(daemon.status()["engine"]["restarts"], faults)
        daemon.stop()

    def test_a_program_that_cannot_go_on_says_why(self):
        daemon = self.daemon(device=LOST)
        before = daemon.engine_pid()
        program = daemon.start([binary("slate", "endless")])
        daemon.wait_for(lambda: any(s["launches"] > 0 for s in daemon.status()["sessions"]), 30, "no launch")
        os.kill(before, signal.SIGKILL)
        out, err = program.communicate(timeout=60 * SLOW)
        self.assertNotEqual(program.returncode, 0, out + err)
        self.assertIn("cannot be done again", err)
        self.assertNotEqual(daemon.engine_pid(), before)
        daemon.stop()

    def test_nothing_is_left_of_sessions_that_have_moved(self):
        # A spare engine that starts meanwhile would take memory, too, and so do an engine's first profiled launches.
        daemon = self.daemon(device=LOST, extra=("--spare-engine", "never", "--form", "native"))

        def free_behind(*victims):
            self.assert_right(daemon, *victims)
            daemon.wait_until_idle()
            return daemon.status()["device"]["memory_free"]

        before = free_behind(*self.start_victims(daemon, 1, 1))
        victim, = self.start_victims(daemon, 1, 2)
        os.kill(daemon.engine_pid(), signal.SIGKILL)
        left = free_behind(victim)
        after = free_behind(*self.start_victims(daemon, 1, 1))
        # A driver takes more for its own use as kernels come, and keeps it.
        (self.assertLessEqual if ON_GPU else self.assertEqual)(after, left, "one that has not moved leaves as much")
        if not ON_GPU:
            self.assertEqual(left, before, "in the engine before, too")
        held = [os.readlink("/proc/%d/fd/%s" % (daemon.process.pid, each))
                for each in os.listdir("/proc/%d/fd" % daemon.process.pid)]
        self.assertFalse([each for each in held if "memfd:slate-" in each], held)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
