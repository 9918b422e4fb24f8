"""Python frameworks (tests/frameworks), unchanged: natively, under slate, and several of them at once. What they print has to
be equal: hashes of their results. A program that does not repeat itself natively is not compared; one whose packages are
missing is skipped."""

import os
import subprocess
import sys
import unittest

from harness import ON_GPU, SLOW, SlateTestCase, binary
from recovery_test import FAULTS

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "../frameworks"))
NO_PROGRAM = {"digest"}
PROGRAMS = sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and name[:-3] not in NO_PROGRAM)
CHOSEN = os.environ.get("SLATE_TEST_FRAMEWORKS", "").split() or PROGRAMS
MIXED = ["torch_transformer", "torch_cnn", "gpt2_generate", "torch_matmul", "triton_kernels", "torch_graph", "jax_jit", "cupy_kernels"]
SECONDS = 300
STEPS = 1500  # of a training that lasts for some faults
PART = 16  # GiB of the device, for programs that do not fit together
LARGE_STEPS = 60  # of such a training
OTHER_USER = 65531


def command(name):
    return [sys.executable, os.path.join(FOLDER, name + ".py")]


def run_natively(name):
    done = subprocess.run(command(name), capture_output=True, text=True, timeout=SECONDS * SLOW)
    return done.returncode, done.stdout, done.stderr


@unittest.skipUnless(ON_GPU, "frameworks bring machine code only")
class FrameworksTest(SlateTestCase):
    answers = {}  # what each program prints natively; None: not the same each time, or not at all

    def native_answer(self, name):
        if name not in self.answers:
            first, second = run_natively(name), run_natively(name)
            repeats = first[0] == 0 and first[:2] == second[:2]
            if "ModuleNotFoundError" in first[2]:
                self.answers[name] = None
            else:
                self.answers[name] = first[1] if repeats else (None if first[0] else "")
        return self.answers[name]

    def check(self, name, code, out, err):
        known = self.native_answer(name)
        if known is None:
            self.skipTest(name + " does not run natively")
        self.assertEqual(code, 0, "%s: %s\n%s" % (name, out, err))
        if known:
            self.assertEqual(out, known, "%s differs from native: %s" % (name, err))

    def test_each_program_is_as_natively(self):
        daemon = self.daemon()
        for name in CHOSEN:
            with self.subTest(program=name):
                self.check(name, *daemon.run([binary("slatectl"), "run", "--"] + command(name), timeout=SECONDS))
        daemon.wait_until_idle()
        daemon.stop()

    def test_several_at_once_are_as_natively(self):
        daemon = self.daemon()
        names = [name for name in MIXED if name in CHOSEN]
        for count in (2, 4, 8):
            together = (names * count)[:count]
            running = [(name, daemon.start([binary("slatectl"), "run", "--"] + command(name))) for name in together]
            for name, process in running:
                out, err = process.communicate(timeout=SECONDS * SLOW)
                with self.subTest(program=name, together=count):
                    self.check(name, process.returncode, out, err)
        daemon.wait_until_idle()
        daemon.stop()

    def test_two_trainings_of_60_percent_of_the_memory_both_end(self):
        training = command("torch_large") + [str(0.6 * PART), str(LARGE_STEPS)]
        alone = subprocess.run(training, capture_output=True, text=True, timeout=SECONDS * SLOW)
        if "ModuleNotFoundError" in alone.stderr:
            self.skipTest("torch is not here")
        daemon = self.daemon(extra=("--device-memory", "%dG" % PART, "--swap", "%dG" % (3 * PART)))
        running = [daemon.start([binary("slatectl"), "run", "--"] + training) for _ in range(2)]
        for process in running:
            out, err = process.communicate(timeout=SECONDS * SLOW)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(out, alone.stdout, err)
        swap = daemon.status()["swap"]
        self.assertGreater(swap["moved_in"], 0, swap)
        print("%.1f GiB out, %.1f GiB in, %d times" % (swap["moved_out"] / 2**30, swap["moved_in"] / 2**30, swap["evictions"]))
        daemon.wait_until_idle()
        daemon.stop()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_a_training_goes_on_beside_faults_of_another_user(self):
        training = command("torch_transformer") + [str(STEPS)]
        alone = subprocess.run(training, capture_output=True, text=True, timeout=SECONDS * SLOW)
        if "ModuleNotFoundError" in alone.stderr:
            self.skipTest("torch is not here")
        daemon = self.daemon(extra=("--bar-after", "0"))
        os.chmod(daemon.root, 0o755)
        process = daemon.start([binary("slatectl"), "run", "--"] + training)
        daemon.wait_for(lambda: process.poll() is not None or any(s["launches"] > 0 for s in daemon.status()["sessions"]), 60, "no launches")
        faults = 0
        while process.poll() is None:
            for how, error in FAULTS.items():
                offender = daemon.start([binary("slate", "offender"), how], user=OTHER_USER, group=OTHER_USER, extra_groups=[])
                out, err = offender.communicate(timeout=60 * SLOW)
                self.assertEqual(out.strip().split("\n")[-1], "%s: %s" % (how, error), err)
                faults += 1
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out, alone.stdout)
        self.assertGreater(faults, len(FAULTS))
        print("%d faults beside %d steps" % (faults, STEPS))
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
