"""Every program with every form forced: the same bits as natively, and really in that form."""

import json
import shutil
import subprocess
import tempfile
import unittest

from harness import ON_GPU, SlateTestCase, binary, expected_output, program_command, programs


class FormsTest(SlateTestCase):
    def directory(self):
        path = tempfile.mkdtemp(prefix="slate-e2e-")
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def hashes(self, form, dispatch="host"):
        """{program: hash} of all programs under one slated, and its counts of launches by form."""
        daemon = self.daemon(extra=("--form", form, "--dispatch", dispatch))
        found = {}
        for name in programs():
            code, out, err = daemon.run(program_command(name, "slate"))
            self.assertEqual(code, 0, "%s as %s: %s%s%s" % (name, form, out, err, daemon.log_text()))
            found[name] = json.loads(out)["hash"]
        daemon.wait_until_idle()
        counts = daemon.status()["forms"]
        self.assertEqual((counts["choice"], counts["dispatch"]), (form, dispatch))
        daemon.stop()
        return found, counts

    def test_all_forms_give_the_same_bits(self):
        native, counts = self.hashes("native")
        self.assertGreater(counts["native"], 0)
        self.assertEqual(counts["worker"] + counts["slice"], 0)
        for form in ("worker", "slice"):
            with self.subTest(form=form):
                found, counts = self.hashes(form)
                self.assertEqual(found, native)
                # Grids of one wave whose blocks communicate stay native; most launches are not of that kind.
                self.assertGreater(counts[form], 10 * counts["native"], counts)

    @unittest.skipUnless(ON_GPU, "sim cannot run kernels that launch kernels")
    def test_workers_that_the_device_starts_give_the_same_bits(self):
        native, _ = self.hashes("native")
        found, counts = self.hashes("worker", "device")
        self.assertEqual(found, native)
        # A kernel's first launches can be resized, as their time is not known.
        self.assertGreater(counts["dispatched"], len(native), counts)

    @unittest.skipIf(ON_GPU, "of the simulator")
    def test_the_simulator_refuses_to_start_workers_by_itself(self):
        daemon = subprocess.run(
            [binary("slated"), "--device", "sim:sms=2", "--dispatch", "device", "--runtime-dir", self.directory()],
            capture_output=True, text=True, timeout=120
        )
        self.assertEqual(daemon.returncode, 1, daemon.stderr)
        self.assertIn("dispatch = \"device\" cannot be had: the simulator cannot run kernels", daemon.stderr)

    def test_forms_share_the_variables_of_the_programs_module(self):
        for form in ("worker", "slice"):
            with self.subTest(form=form):
                daemon = self.daemon(extra=("--form", form))
                code, out, err = daemon.run([binary("slatectl"), "run", "--", binary("shared", "variables")])
                self.assertEqual((code, out), (0, expected_output("variables")), err)
                daemon.wait_until_idle()
                # Grids of one wave stay native: more of them are that small on a GPU.
                self.assertGreaterEqual(daemon.status()["forms"][form], 20 if ON_GPU else 40)
                daemon.stop()

    def test_forms_are_made_behind_the_launches_of_kernels_that_matter(self):
        daemon = self.daemon()

        def rows():
            command = [binary("slatectl"), "profile", "--json"]
            profile = subprocess.run(command, env=daemon.environment, capture_output=True, text=True)
            return json.loads(profile.stdout)["kernels"]

        # The program may end before they are made: on sim, which keeps none, it runs longer.
        command = program_command("gaussian", size_on_sim=200)
        for _ in range(30):
            code, out, err = daemon.run(command)
            self.assertEqual(code, 0, out + err)
            daemon.wait_until_idle()
            if any(row["forms"] for row in rows()):
                break
        self.assertTrue(any(row["forms"].startswith("worker, slice") for row in rows()), rows())
        forms = daemon.status()["forms"]
        self.assertGreater(forms["kernels_made"], 0, forms)
        self.assertGreater(forms["making_ms"], 0, forms)
        daemon.stop()

    def test_auto_runs_many_small_blocks_as_workers(self):
        daemon = self.daemon(extra=("--form", "auto"))
        for name in ("gaussian", "vector_add"):
            code, out, err = daemon.run(program_command(name, "slate"))
            self.assertEqual(code, 0, out + err)
        counts = daemon.status()["forms"]
        self.assertGreater(counts["native"], 0, counts)
        daemon.wait_until_idle()
        daemon.stop()

    def test_a_kernel_that_reads_an_unwritten_register_runs_natively(self):
        for form in ("native", "worker", "slice", "auto"):
            with self.subTest(form=form):
                daemon = self.daemon(extra=("--form", form))
                code, out, err = daemon.run([binary("slate", "unwritten")])
                self.assertEqual(code, 0, out + err)
                self.assertEqual(out, "launches that failed 0\n")
                daemon.wait_until_idle()
                counts = daemon.status()["forms"]
                self.assertGreater(counts["native"], 0, counts)
                self.assertEqual(counts["worker"] + counts["slice"] + counts.get("profile", 0), 0, counts)
                daemon.stop()


if __name__ == "__main__":
    unittest.main()
