"""Every row of the conformance program answers with slate as with the real runtime (tests/conformance)."""

import os
import sys
import unittest

from harness import ON_GPU, SlateTestCase, binary, native

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../conformance"))
import answers


class ConformanceTest(SlateTestCase):
    def rows(self, code, out, err):
        self.assertEqual(code, 0, out + err)
        rows = answers.parse_rows(out)
        self.assertEqual(len(rows), len(dict(rows)), "two rows have one name")
        return rows

    def rows_of_the_real_runtime(self):
        deadly = [name for name, (mark, _) in answers.read().items() if mark == answers.CRASHES]
        rows = self.rows(*native([binary("shared", "conformance"), *deadly]))
        return [row for row in rows if row[0] not in deadly]

    def test_slate_answers_as_the_real_runtime_does(self):
        daemon = self.daemon()
        rows = self.rows(*daemon.run([binary("slate", "conformance")]))
        of_this_device = self.rows_of_the_real_runtime() if ON_GPU else []
        self.assertEqual(answers.differences(rows, of_this_device), [])
        unrecorded = [name for name, (mark, _) in answers.read().items() if mark == answers.EXPECTED]
        print("%d rows, %d of them not recorded from the real runtime yet" % (len(rows), len(unrecorded)))
        daemon.stop()

    @unittest.skipUnless(ON_GPU, "the real runtime needs a GPU")
    def test_the_recorded_answers_are_those_of_the_real_runtime(self):
        expected = answers.read()
        self.assertEqual([row for row in self.rows_of_the_real_runtime() if not answers.depends_on_device(row[0]) and
                          expected.get(row[0]) != (answers.RECORDED, row[1])], [])


if __name__ == "__main__":
    unittest.main()
