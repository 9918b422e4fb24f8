#!/usr/bin/env python3
"""The answers of the conformance rows: read, compared, recorded.

usage: answers.py record PROGRAM    (linked to the toolkit's runtime, on a machine with a GPU): writes answers.txt
       answers.py expect PROGRAM    adds rows that answers.txt does not have, as not recorded; look at each
"""
import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ANSWERS = os.path.join(FOLDER, "answers.txt")
EXCEPTIONS = os.path.join(FOLDER, "exceptions.txt")


def parse_rows(text):
    """[(name, answer)] of the program's output."""
    return [tuple(line.split(": ", 1)) for line in text.splitlines()]


def read():
    """{name: (is_recorded, answer)}, in order."""
    rows = {}
    with open(ANSWERS) as file:
        for line in file:
            if line[0] in "=?":
                name, answer = line[2:].rstrip("\n").split(": ", 1)
                rows[name] = (line[0] == "=", answer)
    return rows


def exceptions():
    """{name: reason}: where slate differs from the real runtime, and may."""
    with open(EXCEPTIONS) as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file if line.strip() and line[0] != "#")


def depends_on_device(name):
    return name.endswith("@")


def differences(rows, compare_device):
    """What is wrong with a run's rows, as sentences."""
    expected, allowed, found = read(), exceptions(), dict(rows)
    problems = ["%s is not in answers.txt" % name for name in found if name not in expected]
    problems += ["%s was not printed" % name for name in expected if name not in found]
    for name, (recorded, answer) in expected.items():
        if name not in found or name in allowed or (depends_on_device(name) and not compare_device):
            continue
        if found[name] != answer:
            problems.append("%s: %s, but %s: %s" % (name, found[name], "recorded" if recorded else "expected", answer))
    return problems


def write(rows):
    """rows: [(name, is_recorded, answer)]"""
    with open(ANSWERS, "w") as file:
        file.write("# What the rows of the conformance program answer, see README.md. = recorded, ? not recorded yet.\n")
        for name, recorded, answer in rows:
            file.write("%s %s: %s\n" % ("=" if recorded else "?", name, answer))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "expect"):
        sys.exit(__doc__)
    reply = subprocess.run([sys.argv[2]], capture_output=True, text=True)
    if reply.returncode != 0:
        sys.exit("%s ended with %d: %s" % (sys.argv[2], reply.returncode, reply.stderr))
    rows = parse_rows(reply.stdout)
    if sys.argv[1] == "record":
        return write([(name, True, answer) for name, answer in rows])
    known = read() if os.path.exists(ANSWERS) else {}
    write([(name, *known.get(name, (False, answer))) for name, answer in rows])


if __name__ == "__main__":
    main()
