#!/usr/bin/env python3
"""Four users for minutes: two with well-behaved programs, two with hostile ones. Not in CTest. Needs root, to be four users.

A neighbour checks each of its results bit for bit, and times each of its launches. The other programs come and go:
- calm ones launch, check and sleep,
- the attackers of hostile.py,
- killed ones, floods of launches, garbage in the ring, huge modules, calls that must be refused.
Every 10 s a row of the CSV has memory, descriptors and threads of slated and its engine, and the times of the neighbour's
launches. The table at the end has the first quarter beside the last. Exit code 1: a wrong bit, a dead neighbour, an engine
that was replaced, or something left behind.

usage: soak.py [--minutes 10] [--sessions 64] [--seed 1] [--csv FILE] [--device D] [--build B] [--without NAME...]
"""

import argparse
import csv
import json
import os
import random
import shutil
import signal
import sys
import threading
import time

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--sessions", type=int, default=64, help="at a time, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", default="soak.csv")
    parser.add_argument("--device", help="as slated --device; default: $SLATE_TEST_DEVICE, else a sim")
    parser.add_argument("--build", help="the build folder, with bin/ and lib/")
    parser.add_argument("--without", nargs="*", default=[], help="hostile programs that are left out, to find the one that does harm")
    arguments = parser.parse_args()
    # A reserve that is enough for all calm programs.
    os.environ["SLATE_TEST_DEVICE"] = arguments.device or os.environ.get("SLATE_TEST_DEVICE", "sim:sms=8,memory=16G")
    if arguments.build:
        os.environ["SLATE_BUILD"] = arguments.build

import neighbour  # noqa: E402
from harness import ON_GPU, Daemon, Footprint, binary, program_command  # noqa: E402
from hostile import ATTACKS, SESSION, Visitor, be_refused, flood_launches, load_huge_modules, protocol_of, spray_ring  # noqa: E402
from stress_test import SIZES  # noqa: E402

CALM_USERS, HOSTILE_USERS = (65531, 65532), (65529, 65530)
INTERVAL = 10  # s
COLUMNS = ["seconds", "sessions", "slated_mib", "slated_descriptors", "slated_threads", "engine_mib", "engine_descriptors",
           "engine_threads", "launches", "p50_ms", "p99_ms", "wrong", "programs", "killed", "calm_failures"]


# --- What the programs do. Each runs in a fork, as one of the users, until it ends or is killed. -------------------------------


def calm(chance):
    stirrer = neighbour.Stirrer(blocks=2, rounds=4)
    for _ in range(chance.randrange(3, 12)):
        for _ in range(chance.randrange(1, 30)):
            stirrer.stir(chance.randrange(1 << 32))
        if stirrer.wrong_words():
            return 7
        time.sleep(chance.uniform(0.2, 2))
    return 0


def hold_sessions(runtime):
    protocol, held = protocol_of(runtime), []
    for _ in range(8):
        visitor = Visitor(runtime)
        visitor.hello(SESSION, protocol)
        visitor.welcome()
        held.append(visitor)
    signal.pause()


def run_program(command):
    os.execv(command[0], command)


def programs(seed):
    yield [binary("slate", "stress"), "work", str(seed)] + SIZES
    yield [binary("slate", "stress"), "visit", str(seed)] + SIZES
    for name in ("vector_add", "histogram", "sgemm"):
        yield program_command(name)
    if not ON_GPU:
        yield [binary("slate", "endless")]


# --- The crowd ---------------------------------------------------------------------------------------------------------


class Crowd:
    """Keeps a number of programs going, and replaces those that end or have had their time."""

    def __init__(self, daemon, sessions, seed):
        self.daemon, self.sessions, self.random = daemon, sessions, random.Random(seed)
        self.complaints = os.path.join(daemon.root, "complaints")  # of calm programs
        self.alive = {}  # by pid: its name and the time at which it is killed
        self.started = self.killed = self.calm_failures = 0

    def choose(self):
        """A name, seconds to live, and what the program does. Half are calm, and they are not killed."""
        chance, runtime = random.Random(self.random.random()), self.daemon.runtime
        if self.random.random() < 0.5:
            return "calm", 300, (calm, chance)
        life = self.random.uniform(0.1, 12)
        hostile = [
            ("killed", life / 6, (run_program, chance.choice(list(programs(self.started))))),
            ("killed", life / 6, (run_program, chance.choice(list(programs(self.started))))),
            ("flood launches", life, (flood_launches, chance)),
            ("spray the ring", life, (spray_ring, runtime, chance)),
            ("huge modules", life, (load_huge_modules, chance)),
            ("be refused", life, (be_refused, chance)),
            ("hold sessions", life, (hold_sessions, runtime)),
        ]
        hostile += [(name, life / 2, (ATTACKS[name], runtime)) for name in ("squat", "flood", "be_silent", "hoard_questions", "take_memory",
                                                                "take_local_memory", "churn_local_memory")]
        return self.random.choice([each for each in hostile if each[0] not in arguments.without])

    def start_one(self):
        name, life, (action, *rest) = self.choose()
        users = CALM_USERS if name == "calm" else HOSTILE_USERS
        sink = os.open(self.complaints if name == "calm" else "/dev/null", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        environment = self.daemon.environment

        def quiet():
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            return action(*rest)

        pid = neighbour.fork_as(self.random.choice(users), environment, quiet)
        os.close(sink)
        self.alive[pid] = (name, time.time() + life)
        self.started += 1

    def tend(self):
        for pid, (name, end) in list(self.alive.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended and time.time() > end:
                self.stop(pid, name)
                _, status = os.waitpid(pid, 0)
                self.killed += 1
                ended = pid
            if not ended:
                continue
            self.kill(pid, signal.SIGKILL)  # what the program started
            del self.alive[pid]
            if name == "calm" and status != 0:
                self.calm_failures += 1
        if len(self.alive) < self.sessions - 1:
            self.start_one()

    @staticmethod
    def kill(pid, number):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return False
        return True

    def stop(self, pid, name):
        """Ends a program that was not waited for yet: on a busy machine it may not have made its group."""
        # squat cleans up /dev/shm.
        number = signal.SIGTERM if name == "squat" else signal.SIGKILL
        if not self.kill(pid, number):
            os.kill(pid, number)

    def end(self):
        for pid, (name, _) in self.alive.items():
            self.stop(pid, name)
            os.waitpid(pid, 0)
        self.alive.clear()


class Neighbour:
    """The process whose results and times count, and what it has said."""

    def __init__(self, daemon):
        reader, writer = os.pipe()
        self.pid = neighbour.fork_as(CALM_USERS[-1], daemon.environment, neighbour.report_for_ever, writer, INTERVAL / 2)
        os.close(writer)
        self.reports, self.lock, self.alive = [], threading.Lock(), True
        self.thread = threading.Thread(target=self.listen, args=(os.fdopen(reader),), daemon=True)
        self.thread.start()

    def listen(self, said):
        for line in said:
            with self.lock:
                self.reports.append(json.loads(line))
        self.alive = False

    def take(self):
        with self.lock:
            reports, self.reports = self.reports, []
        launches, seconds = sum(each["launches"] for each in reports), sum(each["seconds"] for each in reports)
        worst = max(reports, key=lambda each: each["p99_ms"], default={"p50_ms": float("nan"), "p99_ms": float("nan")})
        return {"launches": round(launches / seconds, 1) if seconds else 0, "p50_ms": round(worst["p50_ms"], 3),
                "p99_ms": round(worst["p99_ms"], 3), "wrong": sum(each["wrong"] for each in reports)}

    def end(self):
        Crowd.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def sample(daemon, engine, began, sessions):
    row = {"seconds": round(time.time() - began), "sessions": sessions}
    for name, pid in (("slated", daemon.process.pid), ("engine", engine)):
        now = Footprint(pid)
        row.update({name + "_mib": round(now.memory / 2**20, 1), name + "_descriptors": now.descriptors, name + "_threads": now.threads})
    return row


def print_table(rows):
    quarter = max(1, len(rows) // 4)
    print("%-20s %14s %14s" % ("mean of", "first quarter", "last quarter"))
    for name in COLUMNS[1:12]:
        first, last = (sum(row[name] for row in part) / len(part) for part in (rows[:quarter], rows[-quarter:]))
        print("%-20s %14.2f %14.2f" % (name, first, last))


def soak(daemon, out, minutes, sessions, seed):
    """The rows, and what is wrong in words."""
    engine, rows, wrong = daemon.engine_pid(), [], []
    checked_one, crowd = Neighbour(daemon), Crowd(daemon, sessions, seed)
    idle = Footprint(daemon.process.pid), Footprint(engine)
    began = due = time.time()
    due += INTERVAL
    try:
        while time.time() < began + 60 * minutes:
            crowd.tend()
            time.sleep(0.02)
            if time.time() < due:
                continue
            due += INTERVAL
            state = daemon.status_or_none()
            row = sample(daemon, engine, began, len(state["sessions"]) if state else -1)
            row.update(checked_one.take(), programs=crowd.started, killed=crowd.killed, calm_failures=crowd.calm_failures)
            rows.append(row)
            out.writerow(row)
            if not checked_one.alive:
                wrong.append("the neighbour ended")
                break
    except (AssertionError, OSError) as error:
        wrong.append("slated or its engine is gone: %s" % error)
    finally:
        crowd.end()
        checked_one.end()
    wrong += ["wrong words: %d" % row["wrong"] for row in rows if row["wrong"]]
    if crowd.calm_failures:
        with open(crowd.complaints) as file:
            wrong.append("%d calm programs failed:\n%s" % (crowd.calm_failures, file.read()[-2000:]))
    daemon.wait_until_idle()
    if daemon.engine_pid() != engine:
        wrong.append("the engine was replaced")
    else:
        time.sleep(5)
        print("slated idle before: %s; after: %s" % (idle[0], Footprint(daemon.process.pid)))
        print("engine idle before: %s; after: %s" % (idle[1], Footprint(engine)))
    if daemon.names_left():
        wrong.append("left in the runtime directory: %s" % daemon.names_left())
    return rows, wrong


def main():
    if os.geteuid() != 0:
        sys.exit("soak.py needs root, to be four users")
    daemon = Daemon(extra=["--kill-grace-seconds", "60"])
    os.chmod(daemon.root, 0o755)
    try:
        with open(arguments.csv, "w", newline="", buffering=1) as file:
            out = csv.DictWriter(file, COLUMNS)
            out.writeheader()
            rows, wrong = soak(daemon, out, arguments.minutes, arguments.sessions, arguments.seed)
        if rows:
            print("%d programs, %d of them killed" % (rows[-1]["programs"], rows[-1]["killed"]))
            print_table(rows)
        if wrong:
            log = arguments.csv + ".log"
            shutil.copy(daemon.log_path, log)
            print("\n".join(["WRONG:"] + wrong + ["slated's log: " + log]))
        daemon.stop()
    finally:
        daemon.discard()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
