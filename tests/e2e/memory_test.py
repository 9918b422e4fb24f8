"""Programs that together, or alone, have more memory than the device. Each checks every word: segments that were moved out
come back as they were, at the same addresses."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from harness import DEVICE, ON_GPU, SLOW, SlateTestCase, binary, can_run, programs, small_command
from kinds_test import PROGRAMS, expected

CARD = 2048 if ON_GPU else 64  # MiB of the device that sessions have; the engine takes some 30 besides
ROUNDS = 40 if ON_GPU else 6
KILLS = int(os.environ.get("SLATE_TEST_KILLS", "4"))
SMALL_DEVICE = DEVICE if ON_GPU else "sim:sms=8,memory=%dM" % (CARD + 64)
OTHER_USER = {"user": 64001, "group": 64001, "extra_groups": []}
EVICT = mock.patch.dict(os.environ, SLATE_TEST_EVICT="1")


def tenant(part, *words, buffers=4, rounds=ROUNDS, seed=1):
    """A program with that part of the card. With --reserve it asks the driver's functions for its memory, which the linked runtime
    does not hand out."""
    program = [binary("slatectl"), "run", "--", binary("static", "tenant")] if "--reserve" in words else [binary("slate", "tenant")]
    return [*program, "--mib", "%g" % (part * CARD), "--buffers", str(buffers), "--rounds", str(rounds),
            "--seed", str(seed), *map(str, words)]


class MemoryTest(SlateTestCase):
    def small(self, *extra, swap=8 * CARD, **keywords):
        """A slated with a small part of the device, and so many MiB of the host."""
        return self.daemon(device=SMALL_DEVICE, extra=("--device-memory", "%dM" % CARD, "--swap", "%dM" % swap, *extra), **keywords)

    def report(self, daemon, process):
        """Of a program that has to end right."""
        try:
            out, err = process.communicate(timeout=180 * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("%s hangs: %s\n%s" % (process.args, daemon.status_or_none(), daemon.log_text()[-3000:]))
        self.assertEqual(process.returncode, 0, "%s: %s%s%s" % (process.args, out, err, daemon.log_text()[-3000:]))
        found = json.loads(out.strip().split("\n")[-1])
        self.assertEqual(found["wrong"], 0)
        return found

    def all_right(self, daemon, *commands, **keywords):
        """Runs them at once. Returns what they report."""
        processes = [daemon.start(command, **keywords) for command in commands]
        for process in processes:
            self.addCleanup(process.kill)
        return [self.report(daemon, process) for process in processes]

    def other_user(self, daemon):
        """For daemon.start(): another user, where this one is root and others can reach the programs."""
        if os.geteuid() != 0 or not can_run(OTHER_USER["user"], binary("slate", "tenant")):
            return {}
        os.chmod(daemon.root, 0o755)
        return OTHER_USER

    def swap(self, daemon):
        """What the engine says of it. A busy engine leaves it out of a status."""
        found = {}

        def is_told():
            found.update(daemon.status().get("swap") or {})
            return found

        daemon.wait_for(is_told, 10, "the engine says nothing of the swap")
        return found

    def assert_moved(self, daemon):
        found = self.swap(daemon)
        for key in "moved_out", "moved_in":
            self.assertGreater(found[key], 0, found)

    def assert_nothing_left(self, daemon):
        daemon.wait_until_idle()
        found = self.swap(daemon)
        self.assertEqual((found["used"], found["host_used"]), (0, 0), found)

    def stop(self, daemon):
        self.assert_nothing_left(daemon)
        daemon.stop()

    def started(self, daemon, *commands):
        """Processes of programs that launch."""
        processes = [daemon.start(command) for command in commands]
        for process in processes:
            self.addCleanup(process.kill)
        daemon.wait_for(lambda: sum(each["launches"] > 0 for each in daemon.status()["sessions"]) >= len(commands), 60, "no launches")
        return processes

    # What fits by turns.

    def test_one_program_has_twice_the_card(self):
        daemon = self.small()
        self.all_right(daemon, tenant(2, "--touch", 2, buffers=8, rounds=2 * ROUNDS))
        self.assert_moved(daemon)
        self.assertEqual(daemon.status()["totals"]["faults"], 0)
        self.stop(daemon)

    def test_memory_that_programs_map_themselves(self):
        daemon = self.small()
        self.all_right(daemon, *(tenant(0.6, "--reserve", "--gap_ms", 20, seed=seed) for seed in range(3)))
        self.assert_moved(daemon)
        self.assertNotIn("kernels reach the rest in the host's memory", daemon.log_text())
        self.all_right(daemon, tenant(1.3, "--reserve", buffers=8))
        self.assertIn("kernels reach the rest in the host's memory", daemon.log_text(), "a launch may reach all of a reservation")
        self.stop(daemon)

    def test_memory_that_programs_map_themselves_moves_before_every_command(self):
        with EVICT:
            daemon = self.small()
        self.all_right(daemon, tenant(0.3, "--reserve", "--expect_zeros", rounds=3), tenant(0.3, "--reserve", rounds=3, seed=2))
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_three_programs_of_60_percent(self):
        daemon = self.small()
        self.all_right(daemon, *(tenant(0.6, "--gap_ms", 20, seed=seed) for seed in range(3)))
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_eight_programs_of_2_6_cards(self):
        daemon = self.small()
        self.all_right(daemon, *(tenant(2.6 / 8, "--gap_ms", 10, "--streams", 1 + seed % 3, seed=seed) for seed in range(8)))
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_what_a_program_computes_does_not_depend_on_moves(self):
        roomy = self.daemon()
        command = tenant(0.6, "--touch", 3, "--streams", 2, seed=5)
        alone, = self.all_right(roomy, command)
        roomy.stop()
        daemon = self.small()
        found = self.all_right(daemon, command, command, command)
        self.assertEqual({each["hash"] for each in found}, {alone["hash"]})
        self.stop(daemon)

    def test_addresses_that_kernels_load_from_memory(self):
        daemon = self.small()
        self.all_right(daemon, *(tenant(0.6, "--indirect", "--touch", 1 + seed, seed=seed) for seed in range(3)))
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_programs_that_fit_move_nothing(self):
        daemon = self.small()
        self.all_right(daemon, *(tenant(0.2, seed=seed) for seed in range(3)))
        found = self.swap(daemon)
        self.assertEqual((found["evictions"], found["moved_out"], found["moved_in"]), (0, 0, 0))
        self.stop(daemon)

    # All that a command does not need is moved out before it.

    def test_moves_before_every_command(self):
        with EVICT:
            daemon = self.small()
        self.all_right(daemon, tenant(0.5, "--touch", 1), tenant(0.5, "--indirect", seed=2), tenant(0.5, "--streams", 3, seed=3))
        self.all_right(daemon, tenant(2, "--touch", 1, buffers=8, rounds=2 * ROUNDS))
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_programs_compute_the_recorded_bits(self):
        with EVICT:
            daemon = self.small()
        for name in "vector_add", "histogram", "radix_sort", "bfs":  # they have the same bits on sim and GPU
            with self.subTest(program=name):
                code, out, err = daemon.run(small_command(name))
                self.assertEqual(code, 0, out + err + daemon.log_text()[-3000:])
                self.assertEqual(json.loads(out)["hash"], programs()[name][2])
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_programs_of_every_kind_are_right(self):
        """Graphs, pools, textures, variables, managed and shared memory, whose addresses slate knows in other ways."""
        with EVICT:
            daemon = self.daemon(extra=("--swap", "2G"))
        # `renewed` has 3,000 commands on 20 MiB each, which takes minutes.
        for name in sorted(set(PROGRAMS) - {"opens_runtime", "renewed"}):
            with self.subTest(program=name):
                code, out, err = daemon.run([binary("slate", name)])
                self.assertEqual((code, out.splitlines()), (0, expected(name)), err + daemon.log_text()[-2000:])
        self.stop(daemon)

    # Ends of programs and engines.

    def test_killed_programs_leave_nothing_and_cost_others_nothing(self):
        daemon = self.small()
        seed = int(os.environ.get("SLATE_TEST_SEED", time.time()))
        print("seed %d" % seed)
        when = random.Random(seed)
        for turn in range(KILLS):
            others = [daemon.start(tenant(0.6, "--gap_ms", 5, seed=each)) for each in range(2)]
            killed = daemon.start(tenant(0.6, *["--indirect"] * (turn % 2), rounds=10000, seed=3))
            time.sleep(when.uniform(0, 2 * SLOW))
            killed.kill()
            killed.communicate()
            for other in others:
                self.report(daemon, other)
        self.assert_nothing_left(daemon)
        self.assertEqual(daemon.status()["engine"]["restarts"], 0)
        daemon.stop()

    def test_programs_go_on_when_the_engine_is_killed(self):
        daemon = self.small()
        rounds = 3 * ROUNDS
        tenants = self.started(daemon, tenant(0.6, "--gap_ms", 20, rounds=rounds), tenant(0.6, "--gap_ms", 20, rounds=rounds, seed=2))
        os.kill(daemon.engine_pid(), signal.SIGKILL)
        for each in tenants:
            self.report(daemon, each)
        self.assertEqual(daemon.status()["engine"]["restarts"], 1)
        self.stop(daemon)

    def test_one_with_twice_the_card_goes_on_when_its_engine_is_killed(self):
        daemon = self.small()
        program, = self.started(daemon, tenant(2, "--touch", 2, buffers=8, rounds=6 * ROUNDS))
        daemon.wait_for(lambda: self.swap(daemon)["moved_in"] > 0, 30, "nothing moves")
        os.kill(daemon.engine_pid(), signal.SIGKILL)
        self.report(daemon, program)
        self.stop(daemon)

    def test_engines_are_renewed_and_sessions_suspended(self):
        daemon = self.small()
        tenants = self.started(daemon, *(tenant(0.6, "--gap_ms", 20, rounds=4 * ROUNDS, seed=seed) for seed in range(2)))
        for words in ["renew"], ["suspend", str(tenants[0].pid)], ["resume", str(tenants[0].pid)]:
            code, out, err = daemon.run([binary("slatectl"), *words])
            self.assertEqual(code, 0, "%s: %s%s%s" % (words, out, err, daemon.log_text()[-3000:]))
        for each in tenants:
            self.report(daemon, each)
        self.stop(daemon)

    # The status.

    def test_a_status_says_what_is_where(self):
        daemon = self.small()
        capacity = self.swap(daemon)["capacity"]  # of the device, without what the driver may need
        self.assertTrue(0.9 * CARD * 2**20 <= capacity <= CARD << 20, capacity)
        first, = self.started(daemon, tenant(0.6, "--gap_ms", 2000, rounds=3))
        second, = self.all_right(daemon, tenant(0.6, seed=2))

        def idle_memory():
            # The second one's session may still be about to end.
            return [each for each in daemon.status()["sessions"] if each["swapped"] > 0 and each["pid"] == first.pid]

        self.assertGreaterEqual(second["bytes"], int(0.59 * CARD) << 20)
        for session in idle_memory():
            self.assertGreaterEqual(session["resident"] + session["swapped"], int(0.6 * CARD) << 20)
        daemon.wait_for(lambda: not any(each["waits_for_memory"] for each in daemon.status()["sessions"]), 30, "a session waits for nobody's memory")
        self.report(daemon, first)
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_a_status_says_whom_a_session_waits_for(self):
        daemon = self.small()
        programs = [daemon.start(tenant(0.6, rounds=100 * ROUNDS, seed=seed)) for seed in range(2)]
        for program in programs:
            self.addCleanup(program.kill)

        def one_waits_for_the_other():
            sessions = {each["id"]: each for each in daemon.status()["sessions"]}
            return any(set(each["waits_for"]) == sessions.keys() - {each["id"]} for each in sessions.values() if each.get("waits_for_memory"))

        daemon.wait_for(one_waits_for_the_other, 60, "no session waits for the other one")
        for program in programs:
            program.kill()
            program.communicate()
        self.stop(daemon)

    # What there is not enough of.

    def test_only_an_allocation_fails_when_the_host_budget_is_used_up(self):
        daemon = self.small(swap=CARD // 4)
        neighbour, = self.started(daemon, tenant(0.6, "--gap_ms", 20, rounds=3 * ROUNDS))
        for _ in range(2):
            code, out, err = daemon.run(tenant(0.8, seed=2))
            self.assertEqual(code, 2, out + err)
            self.assertIn("cudaErrorMemoryAllocation", err)
        self.all_right(daemon, tenant(0.1, seed=3))
        self.report(daemon, neighbour)
        self.assertEqual(daemon.status()["totals"]["faults"], 0)
        self.stop(daemon)

    def test_without_swap_what_does_not_fit_fails(self):
        daemon = self.small(swap=0)
        neighbour, = self.started(daemon, tenant(0.6, "--gap_ms", 20, rounds=3 * ROUNDS))
        code, out, err = daemon.run(tenant(0.6, seed=2))
        self.assertEqual(code, 2, out + err)
        self.assertIn("cudaErrorMemoryAllocation", err)
        self.report(daemon, neighbour)
        daemon.stop()

    def test_memory_beyond_the_pinned_part_is_in_a_folder(self):
        folder = tempfile.mkdtemp(prefix="slate-e2e-swap-")
        self.addCleanup(shutil.rmtree, folder)
        daemon = self.small("--swap-pinned", "%dM" % (CARD // 4), "--swap-directory", folder)
        self.all_right(daemon, *(tenant(0.6, "--gap_ms", 20, seed=seed) for seed in range(3)))
        self.assert_moved(daemon)
        self.stop(daemon)
        self.assertEqual(os.listdir(folder), [])

    def test_memory_beyond_the_pinned_part_is_pageable_without_a_folder(self):
        daemon = self.small("--swap-pinned", "%dM" % (CARD // 4))
        self.all_right(daemon, *(tenant(0.6, "--gap_ms", 20, seed=seed) for seed in range(3)))
        self.assert_moved(daemon)
        self.stop(daemon)

    def test_a_folder_that_is_not_there_fails_allocations_alone(self):
        daemon = self.small("--swap-pinned", "%dM" % (CARD // 4), "--swap-directory", "/nonexistent/slate-swap")
        neighbour, = self.started(daemon, tenant(0.6, "--gap_ms", 20, rounds=3 * ROUNDS))
        code, out, err = daemon.run(tenant(1.2, "--touch", 1, buffers=8, seed=2))
        self.assertEqual(code, 2, out + err)
        self.assertIn("cudaErrorMemoryAllocation", err)
        self.report(daemon, neighbour)
        self.stop(daemon)

    def test_a_full_folder_fails_allocations_alone(self):
        folder = tempfile.mkdtemp(prefix="slate-e2e-swap-")
        self.addCleanup(shutil.rmtree, folder)
        mount = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=%dM swap "$0" && exec "$@"' % (CARD // 4), folder]
        if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True).returncode:
            self.skipTest("may not mount a folder of limited size")
        starter = os.path.join(folder, "slated")
        with open(starter, "w") as file:
            file.write('#!/bin/sh\nexec %s %s "$@"\n' % (" ".join("'%s'" % word for word in mount), binary("slated")))
        os.chmod(starter, 0o755)
        daemon = self.small("--swap-pinned", "%dM" % (CARD // 4), "--swap-directory", folder, program=starter)
        neighbour, = self.started(daemon, tenant(0.6, "--gap_ms", 20, rounds=3 * ROUNDS))
        code, out, err = daemon.run(tenant(1.2, "--touch", 1, buffers=8, seed=2))
        self.assertEqual(code, 2, out + err)
        self.assertIn("cudaErrorMemoryAllocation", err)
        self.report(daemon, neighbour)
        self.assertEqual(daemon.status()["totals"]["faults"], 0)
        self.stop(daemon)

    # What others had.

    def test_new_memory_reads_as_zero_where_others_memory_was(self):
        daemon = self.small()
        other, = self.started(daemon, tenant(0.6, "--gap_ms", 20, rounds=6 * ROUNDS))
        for seed in range(2):
            commands = [tenant(0.5, "--expect_zeros", "--gap_ms", 20, seed=10 * turn + seed) for turn in range(2)]
            self.all_right(daemon, *commands, **self.other_user(daemon))
        self.report(daemon, other)
        self.assert_moved(daemon)
        self.stop(daemon)


if __name__ == "__main__":
    unittest.main()
