"""scripts/demo.py as scripts/demo runs it, and what is left when it is ended early."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import BUILD, DEVICE, SLOW, children

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "demo.py")


class DemoTest(unittest.TestCase):
    def setUp(self):
        self.work = self.enterContext(tempfile.TemporaryDirectory(prefix="slate-e2e-"))
        self.demo = subprocess.Popen(
            [sys.executable, DEMO, BUILD, self.work, DEVICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # Not communicate(): what is left behind would keep the pipes open.
        self.addCleanup(self.demo.stdout.close)
        self.addCleanup(self.demo.stderr.close)
        self.addCleanup(self.demo.wait)
        self.addCleanup(self.demo.kill)

    def test_two_programs_run_at_the_same_time(self):
        out, err = self.demo.communicate(timeout=300 * SLOW)
        self.assertEqual(self.demo.returncode, 0, out + err)
        self.assertIn("both ran at the same time", out)

    def test_a_signal_leaves_no_process_behind(self):
        runtime = os.path.join(self.work, "run")
        deadline = time.monotonic() + 60 * SLOW
        while not os.path.exists(os.path.join(runtime, "slated.sock")) and time.monotonic() < deadline:
            time.sleep(0.01)
        started = children(self.demo.pid)
        self.assertTrue(started)
        self.demo.send_signal(signal.SIGTERM)
        self.demo.communicate(timeout=60 * SLOW)
        self.assertEqual(self.demo.returncode, 130)
        for pid in started:
            self.assertFalse(os.path.exists("/proc/%d" % pid))
        self.assertFalse(os.path.exists(runtime))


if __name__ == "__main__":
    unittest.main()
