"""Each row of the tables in docs/failure_model.md that says who loses what names a test, and there is such a test."""

import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GTEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
SUITES = re.compile(r"\bINSTANTIATE_TEST_SUITE_P\(\s*\w+,\s*(\w+)")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def unit_tests():
    """All names `Suite.Name`, and all names of suites."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "unit", "**", "*.cc"), recursive=True):
        text = read(os.path.relpath(path, ROOT))
        for suite, name in GTEST.findall(text):
            names |= {suite, "%s.%s" % (suite, name)}
        names.update(SUITES.findall(text))
    return names


def is_there(test, names):
    if ": " not in test:
        return test in names
    file, words = test.split(": ")
    path = os.path.join("tests", "e2e", file + "_test.py")
    return os.path.exists(os.path.join(ROOT, path)) and re.search(r"def test_\w*%s" % re.escape(words), read(path)) is not None


def main():
    names, wrong, rows, is_tested = unit_tests(), [], 0, False
    for line in read("docs", "failure_model.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            is_tested = False
        elif cells[-1] == "test":
            is_tested = True
        elif is_tested and not cells[0].startswith("-"):
            rows += 1
            tests = re.findall(r"`([^`]+)`", cells[-1])
            wrong += ["no test: " + cells[0]] if not tests else []
            wrong += ["%s: no test %s" % (cells[0], test) for test in tests if not is_there(test, names)]
    print("\n".join(wrong + ["%d rows" % rows]))
    return 1 if wrong or rows == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
