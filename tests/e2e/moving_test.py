"""Sessions that leave an engine which lives: engines that are renewed, sessions that are suspended, and users with engines
of their own. Victims check every word all the time."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import ON_GPU, binary, can_run
from victims import KeptVariables, Victim, VictimTestCase, wait_until_running

USERS = (64001, 64002)
SECONDS = 4
SMALL = [binary("slate", "vector_add"), "--size", "4096", "--json"]


class MovingTest(VictimTestCase):
    def slatectl(self, daemon, *words):
        code, out, err = daemon.run([binary("slatectl"), *words])
        self.assertEqual(code, 0, out + err + daemon.log_text()[-3000:])
        return out

    def test_engines_are_renewed_under_load_and_nothing_is_lost(self):
        daemon = self.daemon()
        victims = self.start_victims(daemon, 8, SECONDS)
        renewed = 0
        while any(victim.runs() for victim in victims) and renewed < 3:
            before = daemon.engine_pid()
            self.assertIn("the engines are renewed", self.slatectl(daemon, "renew"))
            self.assertNotEqual(daemon.engine_pid(), before)
            daemon.wait_for(lambda: not os.path.exists("/proc/%d" % before), 30, "the old engine stays")
            renewed += 1
        self.assertGreater(renewed, 0)
        print("longest pause of 8 victims in %d renewals: %.0f ms" %
              (renewed, max(self.assert_right(daemon, victim) for victim in victims)))
        self.assertEqual(daemon.status()["engine"]["restarts"], 0)
        self.assertEqual(daemon.status()["totals"]["faults"], 0)
        daemon.stop()

    def test_another_slated_takes_over_under_load_and_nothing_is_lost(self):
        daemon = self.daemon()
        victims = self.start_victims(daemon, 8, SECONDS)
        first = daemon.status()
        upgrades = 0
        while any(victim.runs() for victim in victims) and upgrades < 2:
            self.assertIn("the installed slated has taken over", self.slatectl(daemon, "upgrade"))
            upgrades += 1
            now = daemon.status()
            self.assertEqual(now["upgrades"], upgrades)
            self.assertEqual(now["pid"], first["pid"])
            code, out, err = daemon.run(SMALL)
            self.assertEqual(code, 0, "a newcomer: " + out + err)
        self.assertGreater(upgrades, 0)
        os.kill(daemon.engine_pid(), signal.SIGKILL)  # the new slated has all that the next engine needs
        print("longest pause of 8 victims in %d upgrades: %.0f ms" %
              (upgrades, max(self.assert_right(daemon, victim) for victim in victims)))
        self.assertEqual(daemon.status()["engine"]["restarts"], 1)
        daemon.wait_until_idle()
        self.assertEqual(daemon.status()["totals"]["sessions_served"], 8 + upgrades)
        daemon.stop()

    def test_what_the_installed_slated_does_not_understand_is_not_begun(self):
        folder = tempfile.mkdtemp(prefix="slate-e2e-")
        self.addCleanup(shutil.rmtree, folder)
        installed = os.path.join(folder, "slated")
        shutil.copy(binary("slated"), installed)
        daemon = self.daemon(program=installed)
        victim, = self.start_victims(daemon, 1, SECONDS)
        engine = daemon.engine_pid()
        os.remove(installed)
        shutil.copy("/bin/false", installed)
        code, out, err = daemon.run([binary("slatectl"), "upgrade"])
        self.assertNotEqual(code, 0, out + err)
        self.assertIn("the new engines did not start", err)
        self.assertEqual(daemon.engine_pid(), engine)
        self.assertEqual(daemon.status()["upgrades"], 0)
        self.assert_right(daemon, victim)
        daemon.stop()

    def test_a_program_is_suspended_and_goes_on_in_another_engine(self):
        daemon = self.daemon()
        empty = daemon.status()["device"]["memory_free"]
        victim, = self.start_victims(daemon, 1, SECONDS)
        session = str(daemon.status()["sessions"][0]["id"])
        self.assertIn("suspended", self.slatectl(daemon, "suspend", session))
        status = daemon.status()
        self.assertEqual(status["sessions"][0]["state"], "suspended")
        self.assertGreaterEqual(status["device"]["memory_free"], empty - (64 << 20), "its memory is not on the device")
        self.slatectl(daemon, "renew")
        code, out, err = daemon.run(SMALL)
        self.assertEqual(code, 0, out + err)
        self.assertTrue(victim.runs())
        self.assertIn("goes on", self.slatectl(daemon, "resume", session))
        self.assert_right(daemon, victim)
        daemon.stop()

    def test_variables_are_kept_when_engines_are_renewed_and_sessions_suspended(self):
        daemon = self.daemon()
        variables = KeptVariables(daemon, 2 * SECONDS)
        session = str(daemon.status()["sessions"][0]["id"])
        moves = 0
        while variables.runs() and moves < 2:
            self.assertIn("the engines are renewed", self.slatectl(daemon, "renew"))
            if not variables.runs():
                break
            self.assertIn("suspended", self.slatectl(daemon, "suspend", session))
            self.assertIn("goes on", self.slatectl(daemon, "resume", session))
            moves += 1
        self.assertEqual(variables.complaint(), "", daemon.log_text()[-3000:])
        self.assertGreater(moves, 0)
        self.assertIn("0 sessions cannot leave theirs", daemon.log_text())
        daemon.stop()

    @unittest.skipUnless(ON_GPU and os.geteuid() == 0 and shutil.which("nvcc"), "needs a GPU, nvcc, and root, to be two users")
    def test_code_without_a_fence_leaves_other_users(self):
        daemon = self.daemon()
        os.chmod(daemon.root, 0o755)
        folder = tempfile.mkdtemp(prefix="slate-e2e-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        bare = os.path.join(folder, "victim")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kernels/faults/victim.cu")
        subprocess.run(["nvcc", "-std=c++17", "-gencode", "arch=compute_90,code=sm_90", "-cudart", "shared", source, "-o", bare], check=True)
        run = [binary("slatectl"), "run", "--", bare]
        as_user = [{"user": user, "group": user, "extra_groups": []} for user in USERS]
        shared = daemon.engine_pid()

        def domains():
            return {each["uid"]: each["domain"] for each in daemon.status()["sessions"]}

        fenced, = self.start_victims(daemon, 1, 8, **as_user[0])
        unfenced = Victim(daemon, 6, program=run, **as_user[1])
        daemon.wait_for(lambda: domains().get(USERS[1]) == "uid %d" % USERS[1], 30, "it does not move")
        self.assertEqual(domains()[USERS[0]], "common")
        for victim in fenced, unfenced:
            self.assert_right(daemon, victim)
        # A user that is alone keeps the common engine. It becomes his own when another one comes. The one that both were in is
        # renewed first.
        daemon.wait_for(lambda: len(daemon.status()["engines"]) == 1, 60, "engines without sessions stay")
        daemon.wait_for(lambda: daemon.engine_pid() != shared, 60, "the engine of two users is not renewed")
        engine = daemon.engine_pid()
        unfenced = Victim(daemon, 6, program=run, **as_user[1])
        wait_until_running(daemon, 1)
        fenced, = self.start_victims(daemon, 1, 2, **as_user[0])
        self.assertEqual(domains(), {USERS[0]: "common", USERS[1]: "uid %d" % USERS[1]})
        self.assertEqual({each["domain"]: each["pid"] for each in daemon.status()["engines"]}["uid %d" % USERS[1]], engine)
        for victim in fenced, unfenced:
            self.assert_right(daemon, victim)
        daemon.stop()

    @unittest.skipIf(ON_GPU, "behind an endless kernel the driver loads no more code of its engine, such as the victim's forms")
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_sessions_follow_a_newcomer_who_could_not_wait_once_they_are_idle(self):
        daemon = self.daemon(extra=("--max-blocking-ms", "0", "--audit"))
        os.chmod(daemon.root, 0o755)
        if not can_run(USERS[0], SMALL[0]):
            self.skipTest("other users cannot reach the build folder")
        as_user = [{"user": user, "group": user, "extra_groups": []} for user in USERS]
        victim, = self.start_victims(daemon, 1, SECONDS, **as_user[0])
        endless = daemon.start([binary("slate", "endless")], **as_user[0])
        self.addCleanup(endless.kill)
        self.assertEqual(endless.stdout.readline(), "running\n")
        out, err = daemon.start(SMALL, **as_user[1]).communicate(timeout=60)
        self.assertIn('"ok"', out, err)
        self.assert_right(daemon, victim)
        self.assertRegex(daemon.log_text(), r"session \d+ .*victim.* goes on in the next engine")
        self.assertNotRegex(daemon.log_text(), r"session \d+ .*endless.* goes on in the next engine")
        self.assertIsNone(endless.poll())
        endless.kill()
        endless.communicate()
        daemon.stop()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_users_with_engines_of_their_own_do_not_meet(self):
        daemon = self.daemon(extra=("--sharing", "user"))
        os.chmod(daemon.root, 0o755)
        if not can_run(USERS[0], SMALL[0]):
            self.skipTest("other users cannot reach the build folder")
        victims = [self.start_victims(daemon, 1, SECONDS, user=user, group=user, extra_groups=[])[0] for user in USERS]
        domains = {each["uid"]: each["domain"] for each in daemon.status()["sessions"]}
        self.assertEqual(domains, {user: "uid %d" % user for user in USERS})
        engines = {each["domain"]: each["pid"] for each in daemon.status()["engines"]}
        self.assertEqual(len(set(engines.values())), 3, engines)
        for victim in victims:
            self.assert_right(daemon, victim)
        daemon.wait_for(lambda: len(daemon.status()["engines"]) == 1, 60, "engines without sessions stay")
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
