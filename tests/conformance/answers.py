#!/usr/bin/env python3
"""The answers of the conformance rows: read, compared, recorded.

usage: answers.py record PROGRAM [ANSWERS]    on a machine with a GPU, without slate: writes the answers
       answers.py expect PROGRAM [ANSWERS]    adds rows that there is no answer for, as not recorded; look at each

ANSWERS: answers.txt, of cudart, or driver_answers.txt.
"""
import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ANSWERS = os.path.join(FOLDER, "answers.txt")
DRIVER_ANSWERS = os.path.join(FOLDER, "driver_answers.txt")
EXCEPTIONS = os.path.join(FOLDER, "exceptions.txt")

# How an answer came about, as answers.txt marks it.
RECORDED, EXPECTED, CRASHES = "=", "?", "!"


def parse_rows(text):
    """[(name, answer)] of the program's output."""
    return [tuple(line.split(": ", 1)) for line in text.splitlines()]


def read(path=ANSWERS):
    """{name: (mark, answer)}, in order."""
    rows = {}
    with open(path) as file:
        for line in file:
            if line[0] in (RECORDED, EXPECTED, CRASHES):
                name, answer = line[2:].rstrip("\n").split(": ", 1)
                rows[name] = (line[0], answer)
    return rows


def deadly(path=ANSWERS):
    """The rows that the real runtime does not survive."""
    return [name for name, (mark, _) in read(path).items() if mark == CRASHES]


def exceptions():
    """{name: reason}: where slate differs from the real runtime, and may."""
    with open(EXCEPTIONS) as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file if line.strip() and line[0] != "#")


def depends_on_device(name):
    return name.endswith("@")


def differences(rows, of_this_device, path=ANSWERS, left_out=()):
    """What is wrong with a run's rows, as sentences. `of_this_device`: the real runtime's rows on the device that the
    run was on, or none; rows that depend on the device are compared with them only. `left_out`: rows not called."""
    expected, allowed = read(path), exceptions()
    expected = {name: row for name, row in expected.items() if name not in left_out}
    found = {name: answer for name, answer in rows if name not in left_out}
    device = dict(of_this_device)
    problems = ["%s is not in %s" % (name, os.path.basename(path)) for name in found if name not in expected]
    problems += ["%s was not printed" % name for name in expected if name not in found]
    for name, (mark, answer) in expected.items():
        if depends_on_device(name):
            answer = device.get(name)
        if name not in found or name in allowed or answer is None:
            continue
        if found[name] != answer:
            problems.append("%s: %s, but %s: %s" % (name, found[name], "recorded" if mark == RECORDED else "expected",
                                                    answer))
    return problems


def write(rows, path):
    """rows: [(name, mark, answer)]"""
    with open(path, "w") as file:
        file.write("# What the rows of the conformance program answer, see README.md. = recorded, ? not recorded yet, ! what the\n"
                   "# real runtime does not survive: slate's answer.\n")
        for name, mark, answer in rows:
            file.write("%s %s: %s\n" % (mark, name, answer))


def run_without_crash(program):
    """The rows of a run from which those are left out that end it or hang. Each of them costs a run."""
    left_out = []
    while True:
        try:
            reply = subprocess.run([program, *left_out], capture_output=True, text=True, timeout=60)
            code, out = reply.returncode, reply.stdout
        except subprocess.TimeoutExpired as expired:
            code, out = None, expired.stdout.decode()
        if code == 0:
            return parse_rows(out)
        last = out.rsplit("\n", 1)[-1].removesuffix(": ")
        if not last or last in left_out:
            sys.exit("%s ended with %s, after %s" % (program, code, out[-200:]))
        print("%s: %s" % (last, "hangs" if code is None else "ends with %d" % code), flush=True)
        left_out.append(last)


def record(program, path):
    known = read(path) if os.path.exists(path) else {}

    def row(name, answer):
        if answer == "crash":
            return name, CRASHES, known.get(name, (None, "?"))[1]
        return name, RECORDED, answer

    write([row(*each) for each in run_without_crash(program)], path)


def expect(program, path):
    rows = parse_rows(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    known = read(path) if os.path.exists(path) else {}
    write([(name, *known.get(name, (EXPECTED, answer))) for name, answer in rows], path)


def main():
    verbs = {"record": record, "expect": expect}
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else ANSWERS)


if __name__ == "__main__":
    main()
