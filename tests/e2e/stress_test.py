#!/usr/bin/env python3
"""Programs that check every byte and every return code, beside sessions that come and go (some are killed, some leave
things behind), modules that load and unload, refused calls, and, where this user may have one, a /dev/shm that
somebody fills. CTest runs a few; many, on any device:

usage: stress_test.py [--device cuda] [--runs 1000] [--build BUILD] [--beside 4] [--seed 1]
"""

import argparse
import ctypes
import itertools
import os
import random
import subprocess
import sys
import threading
import time
import unittest

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as slated --device")
    parser.add_argument("--build", help="the build folder, with bin/ and lib/")
    parser.add_argument("--runs", type=int, help="a third of them with a full /dev/shm")
    parser.add_argument("--beside", type=int, default=4, help="programs at a time")
    parser.add_argument("--seed", type=int, default=1)
    arguments, rest = parser.parse_known_args()
    if arguments.device:
        os.environ["SLATE_TEST_DEVICE"] = arguments.device
    if arguments.build:
        os.environ["SLATE_BUILD"] = arguments.build

from harness import ON_GPU, SLOW, Daemon, SlateTestCase, binary, native  # noqa: E402

SMALL_SHM = 24 << 20
# sim executes kernels at a ten-thousandth of a GPU's speed.
SIZES = ["--steps", "60"] if ON_GPU else ["--steps", "25", "--bytes", str(1 << 20), "--touch", "3000"]
RUN_SECONDS = 120


class Counts:
    """What all runs came to."""

    def __init__(self):
        self.runs = self.checked = self.wrong = self.unexpected = self.visits = 0
        self.failures = []

    def add(self, seed, code, out, err):
        self.runs += 1
        words = out.split()
        if len(words) != 6:
            self.unexpected += 1
            self.failures.append("seed %d: exit code %d: %s%s" % (seed, code, out, err[-2000:]))
            return
        checked, wrong, unexpected = (int(word) for word in words[1::2])
        self.checked += checked
        self.wrong += wrong
        self.unexpected += unexpected
        if code != 0 or wrong or unexpected:
            self.failures.append("seed %d: exit code %d: %s%s" % (seed, code, out, err[-2000:]))

    def summary(self):
        return "%d runs, %d bytes checked, %d wrong bytes, %d unexpected codes; %d visitors" % (
            self.runs, self.checked, self.wrong, self.unexpected, self.visits)


class Crowd:
    """Programs through one slated: those that are counted, and visitors all the while."""

    def __init__(self, daemon, counts, scarce, seed):
        self.daemon, self.counts, self.scarce = daemon, counts, scarce
        self.random = random.Random(seed)
        self.seeds = itertools.count(seed)
        self.lock = threading.Lock()
        self.over = threading.Event()

    def command(self, mode, seed):
        program = [binary("slate", "stress")]
        if seed % 2:
            program = [binary("slatectl"), "run", "--", binary("shared", "stress")]
        return program + [mode, str(seed)] + SIZES

    def next_seed(self):
        with self.lock:
            return next(self.seeds)

    def work(self, share):
        """Runs until this crowd has done `share` of them."""
        while True:
            with self.lock:
                if self.started >= share:
                    return
                self.started += 1
            seed = self.next_seed()
            process = self.daemon.start(self.command("work", seed))
            try:
                out, err = process.communicate(timeout=RUN_SECONDS * SLOW)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err = "hangs\n" + err
            with self.lock:
                self.counts.add(seed, process.returncode, out, err)

    def visit(self):
        while not self.over.is_set():
            process = self.daemon.start(self.command("visit", self.next_seed()))
            try:
                # Most leave by themselves, as they like; some are killed before.
                process.communicate(timeout=self.random.choice([0.05, 0.3, 10, 10]) * SLOW)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            with self.lock:
                self.counts.visits += 1

    def fill_shared_memory(self):
        """Leaves anything from nothing to enough, for moments."""
        while not self.over.is_set():
            wanted = self.random.choice([SMALL_SHM, self.random.randrange(SMALL_SHM)])
            with open("/dev/shm/filler", "wb") as file:
                size = 0
                for piece in (1 << 20, 64 << 10, 4096):
                    try:
                        while size < wanted:
                            os.posix_fallocate(file.fileno(), size, piece)
                            size += piece
                    except OSError:
                        pass
                time.sleep(self.random.random() * 0.3)

    def run(self, runs, beside):
        self.started = 0
        others = [threading.Thread(target=self.visit) for _ in range(2)]
        if self.scarce:
            others.append(threading.Thread(target=self.fill_shared_memory))
        workers = [threading.Thread(target=self.work, args=(runs,)) for _ in range(beside)]
        for thread in others + workers:
            thread.start()
        for thread in workers:
            thread.join()
        self.over.set()
        for thread in others:
            thread.join()


def stress(runs, beside, seed, scarce):
    daemon, counts = Daemon(), Counts()
    engine = daemon.engine_pid()
    try:
        Crowd(daemon, counts, scarce, seed).run(runs, beside)
        daemon.wait_until_idle()
        if daemon.engine_pid() != engine:
            counts.failures.append("the engine was replaced:\n" + daemon.log_text()[-4000:])
        daemon.stop()
    finally:
        daemon.discard()
    return counts


def make_small_shared_memory():
    """For this process and its children; false where this user cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 1 << 18
    if libc.unshare(clone_newns) != 0 or libc.mount(b"none", b"/", None, ms_rec | ms_private, None) != 0:
        return False
    return libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777,size=%d" % SMALL_SHM) == 0


def stress_with_full_shared_memory(runs, beside, seed):
    """In a process of its own. Its counts and failures as text; none where this user cannot have a small /dev/shm."""
    script = ("import sys; sys.path.insert(0, %r); import stress_test; sys.exit(stress_test.full_main(%d, %d, %d))"
              % (os.path.dirname(os.path.abspath(__file__)), runs, beside, seed))
    reply = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return None if reply.returncode == 77 else (reply.returncode, reply.stdout + reply.stderr)


def full_main(runs, beside, seed):
    if not make_small_shared_memory():
        return 77
    return report(stress(runs, beside, seed, scarce=True), "full /dev/shm: ")


def report(counts, title):
    for failure in counts.failures[:20]:
        print(failure)
    print(title + counts.summary())
    return 1 if counts.failures else 0


class StressTest(SlateTestCase):
    RUNS = 40 if ON_GPU else 4

    def test_every_byte_and_code_is_right_beside_sessions_that_come_and_go(self):
        counts = stress(self.RUNS, 4, 1, scarce=False)
        print(counts.summary())
        self.assertEqual(counts.failures, [])

    def test_a_full_dev_shm_is_not_noticed(self):
        outcome = stress_with_full_shared_memory(self.RUNS, 4, 1000)
        if outcome is None:
            self.skipTest("needs a mount of its own")
        print(outcome[1])
        self.assertEqual(outcome[0], 0, outcome[1])

    @unittest.skipUnless(ON_GPU, "the toolkit's runtime needs a GPU")
    def test_what_the_program_expects_is_what_the_toolkits_runtime_does(self):
        for seed in range(10):
            code, out, err = native([binary("shared", "stress"), "work", str(seed)])
            self.assertEqual(code, 0, out + err)


def main():
    if not (arguments.runs or arguments.device or arguments.build):
        unittest.main(argv=sys.argv[:1] + rest)
    runs = arguments.runs or StressTest.RUNS
    scarce = runs // 3
    full = stress_with_full_shared_memory(scarce, arguments.beside, arguments.seed + 500_000)
    if full is None:
        print("full /dev/shm: skipped, as it needs a mount of its own")
        scarce, full = 0, (0, "")
    print(full[1], end="")
    failed = report(stress(runs - scarce, arguments.beside, arguments.seed, scarce=False), "")
    sys.exit(failed or full[0])


if __name__ == "__main__":
    main()
