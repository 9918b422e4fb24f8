"""A storm of SIGKILLs: programs are killed at random points while a neighbour's results are checked byte for byte. Afterwards
slated and its engine have what they had after the first part of the storm. CTest kills a few. For more, or other points:

SLATE_TEST_KILLS=1000 SLATE_TEST_SEED=7 SLATE_BUILD=build/release python3 tests/e2e/kills_test.py

What the full run came to stands in docs/results/users.md.
"""

import itertools
import os
import random
import signal
import subprocess
import threading
import time
import unittest

from harness import ON_GPU, SLOW, Footprint, SlateTestCase, binary, program_command
from stress_test import SIZES

KILLS = int(os.environ.get("SLATE_TEST_KILLS", "60"))
SEED = int(os.environ.get("SLATE_TEST_SEED", "1"))
AT_A_TIME = 3
LONGEST_LIFE = 0.3  # s; most programs here take about as long on an idle machine
WARM_UP = min(KILLS, max(20, KILLS // 10))
# Room that allocators may keep of the busiest moment. A thousandth of it for each kill would be 32 KiB.
MOST_GROWTH = {"slated": 8 << 20, "engine": 32 << 20}


def programs(seed):
    """What is killed: every kind of object that a session can have, in all three ways of starting."""
    run = [binary("slatectl"), "run", "--"]
    yield [binary("slate", "stress"), "work", str(seed)] + SIZES
    yield [binary("slate", "stress"), "visit", str(seed)] + SIZES
    yield run + [binary("shared", "stress"), "work", str(seed)] + SIZES
    for name in ("vector_add", "sgemm", "histogram"):
        yield program_command(name, ("slate", "run", "static")[seed % 3])
    for name in ("host_functions", "graphs", "pools", "ipc", "managed", "textures", "prints", "threads_and_streams"):
        yield [binary("slate", name)]
    if not ON_GPU:  # where a native kernel cannot be stopped
        yield [binary("slate", "endless")]


class Storm:
    """Kills by several threads. Each has a random order of its own, so that a seed has the same programs and lives again."""

    def __init__(self, daemon):
        self.daemon, self.lock, self.numbers = daemon, threading.Lock(), itertools.count(SEED * 1_000_000)
        self.killed = self.ended_before = 0

    def run(self, kills):
        goal = self.killed + kills
        threads = [threading.Thread(target=self.kill_until, args=(goal,)) for _ in range(AT_A_TIME)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def kill_until(self, goal):
        while True:
            with self.lock:
                if self.killed >= goal:
                    return
                number = next(self.numbers)
                self.killed += 1
            if not self.kill_one(random.Random(number), number):
                with self.lock:
                    self.killed -= 1
                    self.ended_before += 1

    def kill_one(self, chance, number):
        """False when the program ended before."""
        command = chance.choice(list(programs(number)))
        process = subprocess.Popen(command, env=self.daemon.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            process.wait(timeout=chance.uniform(0, LONGEST_LIFE) * SLOW)
            return False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True


class Neighbour(threading.Thread):
    """Programs, one after the other, that check every byte and every code."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon, self.over, self.runs, self.failures = daemon, threading.Event(), 0, []

    def run(self):
        while not self.over.is_set():
            command = [binary("slate", "stress"), "work", str(self.runs)] + SIZES
            if self.runs % 3 == 0:
                command = program_command("histogram")
            try:
                code, out, err = self.daemon.run(command)
            except AssertionError as hangs:
                code, out, err = -1, "", str(hangs)
            if code != 0:
                self.failures.append("%s: %d: %s%s" % (command, code, out, err[-2000:]))
            self.runs += 1

    def stop(self):
        self.over.set()
        self.join()


class KillsTest(SlateTestCase):
    def footprints(self, daemon):
        return {"slated": Footprint(daemon.process.pid), "engine": Footprint(daemon.engine_pid())}

    def counters(self, daemon):
        """Pieces of memory in which the engine counts what kernels compute: one, from the first launch on that it measures."""
        return min(1, daemon.status()["forms"]["profile"])

    def settled(self, daemon, before):
        """The footprints once they are down to those from before, or will not be."""
        deadline = time.time() + 20 * SLOW
        while True:
            now = self.footprints(daemon)
            if time.time() > deadline or all(
                now[name].descriptors <= before[name].descriptors and now[name].threads <= before[name].threads for name in now
            ):
                return now
            time.sleep(0.1)

    def test_killed_clients_leave_no_trace_and_the_neighbour_is_right(self):
        daemon = self.daemon(extra=["--kill-grace-seconds", "30"])
        engine = daemon.engine_pid()
        storm, neighbour = Storm(daemon), Neighbour(daemon)
        neighbour.start()
        try:
            storm.run(WARM_UP)
        finally:
            neighbour.stop()
        daemon.wait_until_idle()
        before, counters = self.footprints(daemon), self.counters(daemon)
        second = Neighbour(daemon)
        second.start()
        began = time.time()
        try:
            storm.run(KILLS - WARM_UP)
        finally:
            second.stop()
        seconds = time.time() - began
        daemon.wait_until_idle()
        # sim has a descriptor for each piece.
        before["engine"].descriptors += self.counters(daemon) - counters
        after = self.settled(daemon, before)

        print("%d programs killed, %d ended before; the neighbour ran %d times; %.0f s for the last %d kills" % (
            storm.killed, storm.ended_before, neighbour.runs + second.runs, seconds, KILLS - WARM_UP))
        for name in after:
            print("%-6s after %d kills: %s; after %d: %s" % (name, WARM_UP, before[name], storm.killed, after[name]))
        self.assertEqual(neighbour.failures + second.failures, [])
        self.assertEqual(daemon.engine_pid(), engine, daemon.log_text()[-4000:])
        for name in after:
            self.assertLessEqual(after[name].descriptors, before[name].descriptors, name)
            self.assertLessEqual(after[name].threads, before[name].threads, name)
            if SLOW == 1:  # AddressSanitizer keeps what was freed for a while
                self.assertLessEqual(after[name].memory - before[name].memory, MOST_GROWTH[name], name)
        self.assertEqual(daemon.names_left(), [])
        self.assertEqual(daemon.status()["users"], [])
        self.assert_leaves_nothing(daemon, lambda: self.small_storm(daemon, storm))
        daemon.stop()

    def small_storm(self, daemon, storm):
        storm.run(6)
        daemon.wait_until_idle()


if __name__ == "__main__":
    unittest.main()
