"""Victims, programs that check every word all the time and tell their pauses, and what the offenders beside them get. For tests
and for bench/."""

import re
import threading

from harness import ON_GPU, SLOW, SlateTestCase, binary, expected_output

# What the faults of slate/offender give that the fence finds, on sim as with the real runtime on a GPU.
FAULTS = {"wild": "cudaErrorIllegalAddress", "trap": "cudaErrorLaunchFailure", "misaligned": "cudaErrorMisalignedAddress",
          "illegal": "cudaErrorIllegalInstruction", "assert": "cudaErrorAssert", "freed": "cudaErrorIllegalAddress",
          "spinning": "cudaErrorIllegalAddress"}
# And of its kernel that has no fence, as it calls itself without end.
ALL_FAULTS = {**FAULTS, "stack": "cudaErrorIllegalAddress" if ON_GPU else "cudaErrorLaunchFailure"}


class KeptVariables:
    """tests/programs/kept_variables.cu, which looks at variables of every kind all the time."""

    def __init__(self, daemon, seconds, *words, program=(binary("slate", "kept_variables"),)):
        self.process = daemon.start([*program, str(seconds * SLOW), *words])
        daemon.wait_for(lambda: any(s["launches"] > 3 for s in daemon.status()["sessions"]), 30, "no launch")

    def runs(self):
        return self.process.poll() is None

    def complaint(self):
        """What was wrong; empty: nothing."""
        out, err = self.process.communicate(timeout=60 * SLOW)
        return "" if (self.process.returncode, out) == (0, expected_output("kept_variables")) else out + err


def running(daemon):
    """Sessions that launch."""
    return sum(each.get("launches", 0) > 20 for each in daemon.status()["sessions"])


def is_served(session):
    """Whether an engine has a session of the status, and says so itself: the supervisor's word comes earlier."""
    return session["state"] == "serving" and session["memory_limit"] > 0


def wait_until_running(daemon, count):
    daemon.wait_for(lambda: running(daemon) >= count, 60, "programs do not launch")


class Victim:
    """One victim with three arrays of so many megabytes. `shortest`: milliseconds of a pause that counts. `program`: the
    command, if it is not the one linked with libslate."""

    def __init__(self, daemon, seconds, megabytes=1, shortest=20, program=None, **keywords):
        self.pauses = []  # (end by time.monotonic(), milliseconds)
        self.said = ""
        command = program or [binary("slate", "victim")]
        self.process = daemon.start([*command, str(seconds), str(megabytes), str(shortest)], **keywords)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            told = re.match(r"at ([\d.]+) s: ([\d.]+) ms", line)
            if told:
                self.pauses.append((float(told.group(1)), float(told.group(2))))
            else:
                self.said += line

    def runs(self):
        return self.process.poll() is None

    def longest_since(self, begin):
        return max((ms for end, ms in list(self.pauses) if end >= begin), default=0.0)

    def is_right(self):
        """Waits for its end. Whether every word was right, and no call failed; else `said` has the reason."""
        self.reader.join()
        with self.process.stdout, self.process.stderr:
            self.said += self.process.stderr.read()
        return self.process.wait() == 0


class VictimTestCase(SlateTestCase):
    def start_victims(self, daemon, count, seconds, megabytes=1, **keywords):
        others = running(daemon)
        victims = [Victim(daemon, seconds * SLOW, megabytes, **keywords) for _ in range(count)]
        wait_until_running(daemon, count + others)
        return victims

    def assert_right(self, daemon, victim):
        self.assertTrue(victim.is_right(), victim.said + daemon.log_text()[-3000:])
        return float(re.search(r"longest ([\d.]+) ms", victim.said).group(1))
