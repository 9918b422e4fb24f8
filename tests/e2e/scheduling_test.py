"""Several programs under each policy: right results, who goes first, and what slatectl shows and changes."""

import json
import os
import subprocess
import tempfile
import time
import unittest

from harness import ON_GPU, SlateTestCase, binary, can_run, program_command

POLICIES = ["adaptive", "table", "timeslice", "fifo"]


def command(name, size, reps):
    return program_command(name, "slate")[:1] + ["--json", "--size", str(size), "--reps", str(reps)]


# A kernel of many blocks that takes the device, and slate's notion of a long kernel, its time.
LONG_PROGRAM = "sgemm" if ON_GPU else "black_scholes"
LONG = command("sgemm", 4096, 60) if ON_GPU else command("black_scholes", 2_000_000, 6)
SHORT = command("vector_add", 20_000, 5)
# On an H200 a launch of a quarter of a second, of so many waves that it goes out as workers before its time is known.
ENDLESS = command("fma_loop", 1 << 31, 1) + ["--no-check"]

# Goes on until it is killed: the device always has a launch of it.
STEADY = program_command("fma_loop", json_report=False, extra=("--reps", "100000", "--no-check"))
USERS = (64001, 64002)

# A kernel can be resized from its first launch on.
AT_ONCE = ("--scheduler-forms-at-once",)


class SchedulingTest(SlateTestCase):
    def report(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out + err)
        report = json.loads(out)
        self.assertEqual(report["result"], "ok")
        return report

    def slatectl(self, daemon, *arguments):
        done = subprocess.run([binary("slatectl"), *arguments], env=daemon.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def trace(self, daemon):
        path = os.path.join(daemon.root, "trace.json")
        self.slatectl(daemon, "trace", "--out", path)
        with open(path) as file:
            return json.load(file)["traceEvents"]

    def running(self, daemon, program):
        """The session of the program once a kernel of it runs."""
        found = []

        def runs():
            found[:] = [s for s in daemon.status()["sessions"] if s["program"] == program and s.get("kernel")]
            return bool(found)

        daemon.wait_for(runs, 60, "%s runs no kernel" % program)
        return found[0]

    def test_every_policy_gives_right_results(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                daemon = self.daemon(extra=["--policy", policy])
                jobs = [command("sgemm", 96, 4), command("gaussian", 40, 2), command("scan", 100_000, 4),
                        command("reduction", 200_000, 4)]
                for process in [daemon.start(job) for job in jobs]:
                    self.report(process)
                daemon.wait_until_idle()
                self.assertEqual(daemon.status()["policy"], policy)
                daemon.stop()

    def test_a_long_kernel_makes_room_for_a_higher_priority_and_goes_on(self):
        self.makes_room(AT_ONCE, LONG)

    @unittest.skipUnless(ON_GPU, "sim cannot run kernels that launch kernels")
    def test_so_does_one_whose_workers_the_device_starts(self):
        # Not sgemm: its workers are slower when the device starts them, so it would run natively.
        self.makes_room((*AT_ONCE, "--dispatch", "device"), command("fma_loop", 1 << 28, 40))

    def makes_room(self, options, job):
        daemon = self.daemon(extra=options)
        alone = self.report(daemon.start(job))
        low = daemon.start(job)
        low_id = self.running(daemon, os.path.basename(job[0]))["id"]
        daemon.environment["SLATE_PRIORITY"] = "5"
        for _ in range(3):  # one of them may meet the pause between two launches
            self.report(daemon.start(SHORT))
        del daemon.environment["SLATE_PRIORITY"]
        self.assertIsNone(low.poll(), "the long program ended before the short one")
        self.assertEqual(self.report(low)["hash"], alone["hash"])
        events = self.trace(daemon)
        of_low = {e["pid"] for e in events if e.get("name") == "process_name" and
                  "session %d," % low_id in e["args"]["name"]}
        resizes = [e["name"] for e in events if e.get("cat") == "resize" and e["pid"] in of_low]
        self.assertTrue(any(name.startswith("retreat") for name in resizes), resizes)
        self.assertTrue(any(name.startswith("resume") for name in resizes), resizes)
        daemon.wait_until_idle()
        daemon.stop()

    @unittest.skipUnless(ON_GPU, "sim has no calls that wait until the device rests")
    def test_a_newcomer_does_not_wait_for_the_end_of_a_long_kernel(self):
        for dispatch in ("host", "device"):
            with self.subTest(dispatch=dispatch):
                self.newcomer_does_not_wait(dispatch)

    def newcomer_does_not_wait(self, dispatch):
        # Loading its modules would, if the kernel stayed on the device meanwhile.
        daemon = self.daemon(extra=(*AT_ONCE, "--dispatch", dispatch))
        self.report(daemon.start(SHORT))  # compiled, then
        process = daemon.start(ENDLESS)
        long = self.running(daemon, "fma_loop")
        self.report(daemon.start(SHORT))
        after = [s for s in daemon.status()["sessions"] if s["id"] == long["id"]]
        self.assertEqual([(s["launches"], bool(s.get("kernel"))) for s in after], [(1, True)])
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out + err)
        daemon.wait_until_idle()
        daemon.stop()

    @unittest.skipUnless(ON_GPU, "sim cannot run kernels that launch kernels")
    def test_programs_beside_each_other_whose_workers_the_device_starts_give_right_results(self):
        jobs = [command("sgemm", 4096, 30), command("gaussian", 2048, 2), command("fma_loop", 1 << 24, 20),
                command("reduction", 1 << 26, 40)]
        for policy in POLICIES:
            with self.subTest(policy=policy):
                daemon = self.daemon(extra=(*AT_ONCE, "--policy", policy, "--dispatch", "device"))
                alone = [self.report(daemon.start(job))["hash"] for job in jobs]
                together = [self.report(process)["hash"] for process in [daemon.start(job) for job in jobs]]
                self.assertEqual(together, alone)
                daemon.wait_until_idle()
                self.assertGreater(daemon.status()["forms"]["dispatched"], 0)
                # A program that is gone leaves no dispatch kernel that waits.
                process = daemon.start(LONG)
                self.running(daemon, LONG_PROGRAM)
                process.kill()
                process.communicate()
                daemon.wait_until_idle()
                daemon.stop()

    def parts_of_two_users(self, weights):
        """The two users' parts of the device's time, in engines of their own: means over three seconds in which both
        launch. Then their launches in that time, and whose engines were held."""
        config = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.addCleanup(config.close)
        for user, weight in zip(USERS, weights):
            config.write('[[user]]\nname = "%d"\nweight = %s\n' % (user, weight))
        config.flush()
        daemon = self.daemon(extra=("--sharing", "user", "--config", config.name))
        os.chmod(daemon.root, 0o755)
        as_user = [{"user": user, "group": user, "extra_groups": []} for user in USERS]
        if not can_run(USERS[0], STEADY[0]):
            self.skipTest("other users cannot reach the build folder")
        programs = [daemon.start(STEADY, **each) for each in as_user]

        def launches(status):
            return {each["uid"]: each["launches"] for each in status["sessions"]}

        # The parts are those of about the last second: all time before both were there is forgotten.
        daemon.wait_for(lambda: min(launches(daemon.status()).get(user, 0) for user in USERS) > 20, 60,
                        "programs do not launch")
        time.sleep(4)
        seen, held = [], set()
        first = launches(daemon.status())
        for _ in range(60):
            time.sleep(0.05)
            status = daemon.status()
            engines = {each["domain"]: each for each in status["engines"]}
            own = [engines["uid %d" % user] for user in USERS]
            seen.append([each["time"] for each in own])
            held |= {user for user, each in zip(USERS, own) if each["held"]}
        last = launches(daemon.status())
        for process in programs:
            self.assertIsNone(process.poll(), "it ended: %s" % process.args)
            process.kill()
            process.communicate()
        daemon.wait_until_idle()
        daemon.stop()
        parts = [sum(part) / len(seen) for part in zip(*seen)]
        return parts, [last[user] - first[user] for user in USERS], held

    # On sim each engine has a device of its own, but engines keep to their shares all the same.
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_engines_of_two_users_have_parts_of_the_time_by_weight(self):
        parts, launches, held = self.parts_of_two_users((9, 1))
        self.assertIn(USERS[1], held)
        self.assertGreater(parts[0], 0.75, parts)
        self.assertLess(parts[1], 0.25, parts)
        self.assertGreater(launches[0], 2 * launches[1])
        parts, _, _ = self.parts_of_two_users((3, 1))
        self.assertGreater(parts[0] / parts[1], 2, parts)
        self.assertLess(parts[0] / parts[1], 4.5, parts)

    def test_status_shows_progress_and_set_changes_shares(self):
        daemon = self.daemon()
        process = daemon.start(LONG)
        session = self.running(daemon, LONG_PROGRAM)
        self.assertEqual(session["weight"], 1)
        self.assertGreater(session["blocks"], 0)
        self.assertLessEqual(session["blocks_done"], session["blocks"])
        self.slatectl(daemon, "set", str(session["id"]), "--weight", "3", "--priority", "-2")
        again = self.running(daemon, LONG_PROGRAM)
        self.assertEqual((again["weight"], again["priority"]), (3, -2))
        self.report(process)
        table = json.loads(self.slatectl(daemon, "profile", "--json"))
        self.assertTrue(any(LONG_PROGRAM in row["name"] for row in table["kernels"]), table)
        daemon.wait_until_idle()
        daemon.stop()

    def test_an_arrangement_set_by_hand_is_kept_and_shown(self):
        daemon = self.daemon()
        alone = self.report(daemon.start(LONG))
        table = json.loads(self.slatectl(daemon, "profile", "--json"))
        sms = table["sm_count"]
        half = sms // 16 * 8 if sms > 16 else sms // 2
        self.slatectl(daemon, "profile", "group", LONG_PROGRAM, LONG_PROGRAM, "--sms",
                      "%d,%d" % (half, sms - half))
        programs = [daemon.start(LONG), daemon.start(LONG)]
        wanted = "on SMs %d-%d" % (half, sms - 1)
        daemon.wait_for(lambda: wanted in daemon.status()["arrangement"], 60, "nobody is " + wanted)
        for process in programs:
            self.assertEqual(self.report(process)["hash"], alone["hash"])
        table = json.loads(self.slatectl(daemon, "profile", "--json"))
        self.assertTrue(table["groups"][0]["pinned"])
        self.slatectl(daemon, "profile", "group", LONG_PROGRAM, LONG_PROGRAM, "--auto")
        self.assertFalse(json.loads(self.slatectl(daemon, "profile", "--json"))["groups"])
        daemon.wait_until_idle()
        daemon.stop()

    def test_profiles_outlive_slated(self):
        daemon = self.daemon()
        self.report(daemon.start(command("sgemm", 96, 30)))
        daemon.wait_until_idle()
        before = json.loads(self.slatectl(daemon, "profile", "--json"))["kernels"]
        self.assertTrue(before)
        daemon.restart()
        after = json.loads(self.slatectl(daemon, "profile", "--json"))["kernels"]
        self.assertEqual({row["name"] for row in after}, {row["name"] for row in before})
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
