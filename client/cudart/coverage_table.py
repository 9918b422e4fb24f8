"""The table of cudart's functions: which there are, by topic, which slate has, and why it lacks the others.

What cudart has comes from exports.txt (the names of libcudart.so.13), the topics from the toolkit's runtime header, what
slate has from the symbols of its object files, and the reasons from coverage_notes.txt, the one list kept by hand.
generate_absent.py and generate_coverage.py write the stubs and docs/coverage.md from it.
"""
import csv
import fnmatch
import os
import re
import subprocess

FOLDER = os.path.dirname(os.path.abspath(__file__))
VARIANT = re.compile(r"_(ptsz|ptds)$")  # for programs built with per-thread default streams


def read_exports():
    with open(os.path.join(FOLDER, "exports.txt")) as file:
        return file.read().split()


def defined_functions(nm, objects):
    """The global symbols of object files or of an archive."""
    listing = subprocess.run([nm, "--defined-only", "--extern-only", "--format=posix", *objects],
                             check=True, capture_output=True, text=True).stdout
    return {words[0] for words in map(str.split, listing.splitlines()) if len(words) >= 2}


class Notes:
    """coverage_notes.txt: the first `absent` line whose pattern fits a name tells why it is absent; `partial` lines say
    what an implemented function lacks."""

    def __init__(self, folder=FOLDER):
        self.absent, self.partial, self.used = [], {}, set()
        with open(os.path.join(folder, "coverage_notes.txt")) as file:
            for line in file:
                words = line.split(None, 2)
                if not words or words[0].startswith("#"):
                    continue
                kind, pattern, text = words
                if kind == "absent":
                    self.absent.append((pattern, text.strip()))
                elif kind == "partial":
                    self.partial[pattern] = text.strip()
                else:
                    raise SystemExit("coverage_notes.txt: neither absent nor partial: " + line)

    def reason(self, name):
        for pattern, text in self.absent:
            if fnmatch.fnmatchcase(VARIANT.sub("", name), pattern):
                self.used.add(pattern)
                return text
        return None

    def stale(self, defined):
        """Lines that say nothing: of functions that are there, or (partial) that are not."""
        return ([pattern for pattern, _ in self.absent if pattern not in self.used] +
                [name for name in self.partial if name not in defined])


def read_topics(header):
    """{function: topic} of the runtime header, in its order."""
    topics, titles, topic = {}, {}, "Others"
    declaration = re.compile(r"(?:(?:def|addto)group\s+(\w+)\s*([^*\n]*?)\s*(?:\*/)?$)|"
                             r"^\s*extern\s+__host__[^;(]*?\b(\w+)\s*\(", re.M)
    with open(header) as file:
        for group, title, function in declaration.findall(file.read()):
            if group:
                topic = titles.setdefault(group, title.replace(" [DEPRECATED]", ", deprecated"))
            else:
                topics.setdefault(function, topic)
    return topics


SUITES = ("samples", "rodinia", "parboil")


def read_demand():
    """What programs of public suites call, most demanded first: [(function, group, {suite: programs})], and the programs
    that call anything of a group: {group: {suite: programs}}. Functions without a group count by themselves."""
    functions, groups = [], {}
    with open(os.path.join(FOLDER, "demand.csv")) as file:
        for row in csv.DictReader(file):
            counts = {suite: int(row[suite]) for suite in SUITES}
            if row["function"]:
                functions.append((row["function"], row["group"] or row["function"], counts))
            else:
                groups[row["group"]] = counts
    return functions, groups
