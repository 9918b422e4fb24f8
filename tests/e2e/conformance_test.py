"""Every row of the conformance programs answers with slate as with NVIDIA's own libraries (tests/conformance): cudart's rows
through slate's cudart, and through NVIDIA's over slate's driver; the driver's rows through slate's driver."""

import os
import sys
import unittest

from harness import ON_GPU, SlateTestCase, binary, native

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../conformance"))
import answers

OVER_THE_DRIVER = {
    "static": [binary("slatectl"), "run", "--", binary("static", "conformance")],
    "shared": [binary("slatectl"), "run", "--front", "driver", "--", binary("shared", "conformance")],
}
DRIVER_ROWS = binary("driver", "driver_rows")


class ConformanceTest(SlateTestCase):
    def rows(self, code, out, err):
        self.assertEqual(code, 0, out[-500:] + err)
        rows = answers.parse_rows(out)
        self.assertEqual(len(rows), len(dict(rows)), "two rows have one name")
        return rows

    def rows_of_the_real_one(self, program, path):
        deadly = answers.deadly(path)
        rows = self.rows(*native([program, *deadly]))
        return [row for row in rows if row[0] not in deadly]

    def check(self, daemon, command, real, path, left_out=()):
        """`real`: the program that answers natively."""
        rows = self.rows(*daemon.run([*command, *left_out]))
        of_this_device = self.rows_of_the_real_one(real, path) if ON_GPU else []
        self.assertEqual(answers.differences(rows, of_this_device, path, left_out), [])
        unrecorded = [name for name, (mark, _) in answers.read(path).items() if mark == answers.EXPECTED]
        print("%d rows, %d of them not recorded from the real one yet" % (len(rows), len(unrecorded)))

    def check_recorded(self, program, path):
        expected = answers.read(path)
        self.assertEqual([row for row in self.rows_of_the_real_one(program, path) if not answers.depends_on_device(row[0]) and
                          expected.get(row[0]) != (answers.RECORDED, row[1])], [])

    def test_slates_cudart_answers_as_the_real_one_does(self):
        daemon = self.daemon()
        self.check(daemon, [binary("slate", "conformance")], binary("shared", "conformance"), answers.ANSWERS)
        daemon.stop()

    def test_nvidias_cudart_answers_over_slates_driver_as_over_the_real_one(self):
        daemon = self.daemon()
        for kind, command in OVER_THE_DRIVER.items():
            with self.subTest(cudart=kind):
                self.check(daemon, command, binary("shared", "conformance"), answers.ANSWERS, answers.deadly())
        daemon.stop()

    def test_slates_driver_answers_as_the_real_one_does(self):
        daemon = self.daemon()
        command = [binary("slatectl"), "run", "--", DRIVER_ROWS]
        self.check(daemon, command, DRIVER_ROWS, answers.DRIVER_ANSWERS)
        daemon.stop()

    @unittest.skipUnless(ON_GPU, "the real runtime needs a GPU")
    def test_the_recorded_answers_are_those_of_the_real_runtime(self):
        self.check_recorded(binary("shared", "conformance"), answers.ANSWERS)

    @unittest.skipUnless(ON_GPU, "the real driver needs a GPU")
    def test_the_recorded_answers_are_those_of_the_real_driver(self):
        self.check_recorded(DRIVER_ROWS, answers.DRIVER_ANSWERS)


if __name__ == "__main__":
    unittest.main()
