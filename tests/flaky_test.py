"""Fails when tests/flaky.txt names more tests than its first line allows, or one without a reason."""

import os
import re
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "flaky.txt")) as file:
    lines = file.read().splitlines()
most = int(re.fullmatch(r"# at most (\d+) tests", lines[0]).group(1))
tests = [line for line in lines if line and not line.startswith("#")]
bare = [line for line in tests if len(line.split()) < 2]
print("%d flaky tests, at most %d; without a reason: %s" % (len(tests), most, bare or "none"))
sys.exit(1 if len(tests) > most or bare else 0)
