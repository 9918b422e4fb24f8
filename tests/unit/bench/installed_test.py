"""slate-bench works from the place where `cmake --install` puts it. Needs SLATE_BUILD, SLATE_CMAKE and SLATE_BIN, the
folder of installed programs. No time is looked at."""

import os
import subprocess
import tempfile
import unittest


class InstalledTest(unittest.TestCase):
    def test_it_measures_with_what_is_installed(self):
        root = self.enterContext(tempfile.TemporaryDirectory())
        install = [os.environ["SLATE_CMAKE"], "--install", os.environ["SLATE_BUILD"], "--strip"]
        done = subprocess.run(install, env=dict(os.environ, DESTDIR=root), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        programs = root + os.environ["SLATE_BIN"]
        command = [os.path.join(programs, "slate-bench"), "solo", "--programs", "transpose", "--rounds", "1"]
        command += ["--seconds", "0.01", "--device", "sim:sms=4,memory=512M", "--configurations", "slate-fifo"]
        work = os.path.join(root, "elsewhere")
        os.mkdir(work)
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("transpose", done.stdout)
        self.assertTrue(os.path.exists(os.path.join(work, "slate-bench.jsonl")))


if __name__ == "__main__":
    unittest.main()
