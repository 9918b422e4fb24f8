"""The fence in the engine: what a kernel may not do ends its own program only, and innocent kernels compute the same
bits behind it. The device is lost at a fault, as a GPU is."""

import os
import re
import unittest

from harness import DEVICE, ON_GPU, SLOW, SlateTestCase, binary, can_run, expected_output, program_command, programs
from recovery_test import FAULTS, LOST


class FenceTest(SlateTestCase):
    def fenced(self, *extra, **keywords):
        return self.daemon(device=LOST, extra=("--fence", "always") + extra, **keywords)

    def test_a_fault_behind_the_fence_costs_nobody_else_anything(self):
        daemon = self.fenced()
        engine = daemon.engine_pid()
        victim = daemon.start([binary("slate", "victim"), str(4 * SLOW), "1"])
        while victim.poll() is None:
            for how, error in FAULTS.items():
                code, out, err = daemon.run([binary("slate", "offender"), how])
                self.assertEqual(code, 0, out + err + daemon.log_text()[-2000:])
                self.assertEqual(out.strip().split("\n")[-1], "%s: %s" % (how, error), err)
                if how != "assert":  # which says so itself
                    self.assertRegex(err, r"kernel \w*offend\w*: thread \(\d+,0,0\) of block ")
        out, err = victim.communicate()
        self.assertEqual(victim.returncode, 0, out + err)
        daemon.wait_until_idle()
        self.assertEqual(daemon.engine_pid(), engine)
        self.assertEqual(daemon.status()["engine"]["restarts"], 0)
        daemon.stop()

    def test_a_violation_names_access_and_address(self):
        daemon = self.fenced()
        _, _, err = daemon.run([binary("slate", "offender"), "wild"])
        self.assertRegex(err, r"wrote 4 bytes at 0x10, which is no memory of its program's")
        _, _, err = daemon.run([binary("slate", "offender"), "misaligned"])
        self.assertRegex(err, r"wrote 4 bytes at the misaligned address 0x[0-9a-f]+1\b")
        daemon.stop()

    def hashes(self, *extra):
        daemon = self.daemon(extra=extra)
        found = {}
        for name in programs():
            code, out, err = daemon.run(program_command(name, "slate"))
            self.assertEqual(code, 0, "%s: %s%s%s" % (name, out, err, daemon.log_text()[-3000:]))
            found[name] = re.search(r'"hash": *"?(\w+)', out).group(1)
        daemon.wait_until_idle()
        fence = daemon.status().get("fence")
        daemon.stop()
        return found, fence

    def test_programs_compute_the_same_bits_behind_the_fence(self):
        without, fence = self.hashes("--fence", "never")
        self.assertIsNone(fence)
        for form in ("auto", "worker", "slice"):
            with self.subTest(form=form):
                behind, fence = self.hashes("--fence", "always", "--form", form)
                self.assertEqual(behind, without)
                self.assertTrue(fence["on"])
                self.assertGreater(fence["kernels"], 10 * max(fence["unfenced"], 1), fence)

    def test_a_kernel_without_a_fence_runs_or_is_refused_as_chosen(self):
        daemon = self.fenced("--unfenced", "refuse")
        code, out, err = daemon.run([binary("slate", "offender"), "stack"])
        self.assertIn("stack: cudaErrorNotSupported", out, err)
        self.assertIn("may not run beside other users' programs", err)
        self.assertIn("as it has no fence: cannot be fenced: calls ", err)
        self.assertEqual(daemon.status()["engine"]["restarts"], 0)
        daemon.stop()
        daemon = self.daemon(device=DEVICE, extra=("--fence", "always"))
        code, out, err = daemon.run([binary("slate", "unwritten")])
        self.assertEqual(code, 0, out + err)
        daemon.stop()

    def test_variables_are_reached_behind_the_fence(self):
        for name in ("variables", "constants", "kept_variables"):
            for form in ("auto", "native"):  # bounded copies, which have constants of their own, are native
                with self.subTest(program=name, form=form):
                    daemon = self.fenced("--form", form)
                    code, out, err = daemon.run([binary("slatectl"), "run", "--", binary("shared", name)])
                    self.assertEqual((code, out), (0, expected_output(name)), err + daemon.log_text()[-2000:])
                    daemon.stop()

    def test_memory_that_comes_and_goes_beside_kernels_is_theirs(self):
        for name in ("freed_early", "renewed", "managed", "system_atomics"):
            with self.subTest(program=name):
                daemon = self.fenced()
                code, out, err = daemon.run([binary("slate", name)])
                self.assertEqual((code, out), (0, expected_output(name)), err + daemon.log_text()[-2000:])
                self.assertEqual(daemon.fence()["unfenced"], 0)
                daemon.stop()

    def test_a_lone_user_pays_nothing(self):
        daemon = self.daemon()
        code, out, err = daemon.run(program_command("vector_add"))
        self.assertEqual(code, 0, out + err)
        fence = daemon.fence()
        self.assertEqual((fence["choice"], fence["on"], fence["kernels"]), ("auto", False, 0))
        daemon.stop()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_a_user_who_comes_when_another_has_gone_pays_until_the_engine_is_a_new_one(self):
        daemon = self.daemon()
        os.chmod(daemon.root, 0o755)
        engine = daemon.engine_pid()
        command = program_command("vector_add")
        for user, is_on in ((65532, False), (65533, True)):
            if not can_run(user, command[0]):
                self.skipTest("other users cannot reach the build folder")
            process = daemon.start(command, user=user, group=user, extra_groups=[])
            out, err = process.communicate(timeout=120 * SLOW)
            self.assertEqual(process.returncode, 0, out + err)
            daemon.wait_until_idle()
            self.assertEqual(daemon.fence()["on"], is_on, "what the first user has left is still there")
        self.assertEqual(daemon.engine_pid(), engine)
        daemon.wait_for(lambda: daemon.engine_pid() != engine, 60, "the engine is not renewed")
        self.assertFalse(daemon.fence()["on"])
        self.assertEqual(daemon.status()["engine"]["restarts"], 0)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
