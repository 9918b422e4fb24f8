"""Programs of every kind (tests/programs): linked to libslate, and started by slatectl run with the toolkit's runtime, shared
or inside. Programs of the driver's API (tests/driver_programs)."""

import os
import tempfile
import unittest

from harness import BUILD, ON_GPU, SLOW, SlateTestCase, binary, native

FOLDER = os.path.join(os.path.dirname(__file__), "../programs")
NESTED = "nested"  # dynamic parallelism: only its machine code is whole
PROGRAMS = sorted(
    name[: -len(".expected")]
    for name in os.listdir(FOLDER)
    if name.endswith(".expected") and (ON_GPU or name != NESTED + ".expected")
)


SLATECTL_RUN = [binary("slatectl"), "run", "--"]
DRIVER_FOLDER = os.path.join(os.path.dirname(__file__), "../driver_programs")
DRIVER_PROGRAMS = sorted(name[: -len(".expected")] for name in os.listdir(DRIVER_FOLDER) if name.endswith(".expected"))


def expected(name, folder=FOLDER):
    with open(os.path.join(folder, name + ".expected")) as file:
        return file.read().splitlines()


class KindsTest(SlateTestCase):
    def check(self, name, code, out, err, lines=None):
        self.assertEqual(code, 0, "%s: %s%s" % (name, out, err))
        self.assertEqual(out.splitlines(), lines or expected(name), name + ": " + err)

    def test_every_kind_of_program_is_right_both_ways(self):
        daemon = self.daemon()
        for name in PROGRAMS:
            with self.subTest(program=name):
                # The program that opens the runtime by name finds it only on slatectl's path.
                if name != "opens_runtime":
                    self.check(name, *daemon.run([binary("slate", name)]))
                self.check(name, *daemon.run(SLATECTL_RUN + [binary("shared", name)]))
        daemon.wait_until_idle()
        daemon.stop()

    def test_every_kind_of_program_is_right_over_the_driver(self):
        daemon = self.daemon()
        for name in PROGRAMS:
            with self.subTest(program=name):
                self.check(name, *daemon.run(SLATECTL_RUN + [binary("static", name)]))
                over_the_driver = [binary("slatectl"), "run", "--front", "driver", "--", binary("shared", name)]
                self.check(name, *daemon.run(over_the_driver))
        daemon.wait_until_idle()
        daemon.stop()

    def test_a_shell_can_put_all_that_it_starts_under_slate(self):
        daemon = self.daemon()
        script = 'eval "$("$0" env)" && exec "$1"'
        self.check("launches", *daemon.run(["sh", "-c", script, binary("slatectl"), binary("static", "launches")]))
        self.assertEqual(daemon.status()["totals"]["sessions_served"], 1)
        daemon.stop()

    def test_programs_of_the_drivers_api_are_right(self):
        daemon = self.daemon()
        for name in DRIVER_PROGRAMS:
            with self.subTest(program=name):
                lines = expected(name, DRIVER_FOLDER)
                self.check(name, *daemon.run(SLATECTL_RUN + [binary("driver", name)]), lines)
                if ON_GPU:
                    self.check(name, *native([binary("driver", name)]), lines)
        daemon.wait_until_idle()
        daemon.stop()

    @unittest.skipUnless(ON_GPU, "the toolkit's runtime needs a GPU")
    def test_the_expected_output_is_that_of_the_toolkits_runtime(self):
        for name in PROGRAMS:
            with self.subTest(program=name):
                self.check(name, *native([binary("shared", name)]))

    @unittest.skipIf(ON_GPU, "a GPU runs it")
    def test_dynamic_parallelism_is_refused_on_sim(self):
        daemon = self.daemon()
        _, out, err = daemon.run([binary("slate", NESTED)])
        self.assertTrue(out.endswith("cudaErrorNoKernelImageForDevice\n"), out)
        self.assertIn("slate: the simulated device executes PTX only", err)
        daemon.stop()

    def test_a_programs_heap_is_its_own(self):
        daemon = self.daemon()

        # Each takes all of its heap and gives nothing back: neither the others nor those after them miss anything.
        def together():
            for each in [daemon.start([binary("slate", "heap")]) for _ in range(3)]:
                out, err = each.communicate(timeout=120 * SLOW)
                self.check("heap", each.returncode, out, err)
            daemon.wait_until_idle()

        self.assert_leaves_nothing(daemon, together)
        daemon.stop()

    def test_a_heap_is_charged_to_its_session(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "slated.toml")
            with open(path, "w") as file:
                file.write('memory_limit = "12M"\n')
            daemon = self.daemon(extra=["--config", path])
            code, out, err = daemon.run([binary("slate", "heap")])
            self.assertEqual(code, 0, err)
            self.assertIn("much of 16 MiB given 0", out)
            self.assertNotIn("printed beside malloc", out)
            daemon.stop()

    def test_libslate_can_be_opened_by_name(self):
        daemon = self.daemon()
        library = os.path.join(BUILD, "lib", "libslate.so")
        self.check("opens_runtime", *daemon.run([binary("slate", "opens_runtime"), library]))
        daemon.stop()

    def test_a_program_that_calls_something_absent_ends_with_a_clear_error(self):
        daemon = self.daemon()
        for _ in range(2):
            code, _, err = daemon.run([binary("slate", "absent_call")])
            self.assertEqual(code, 3, err)
            self.assertIn("slate: cudaGraphicsUnregisterResource is not supported yet: ", err)
            self.assertIn("cudaErrorNotSupported", err)
        # Nobody waits for the answer to a report, so the program may end before it is counted.
        daemon.wait_until_idle()
        self.assertEqual(daemon.status()["unsupported"], {"cudaGraphicsUnregisterResource": 2})
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
