#!/usr/bin/env python3
"""A library exports the functions in some lists, each under its symbol version (empty: without one), all of them and
nothing else, and needs no shared library but the C library's.

usage: exports_test.py NM READELF|- LIBRARY VERSION=EXPORTS...    (-: a sanitized build, which needs more libraries)
"""
import re
import subprocess
import sys

ALLOWED = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.[0-9]+$|ld-linux.*")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    nm, readelf, library, *nodes = sys.argv[1:]
    wanted, versions = set(), set()
    for version, exports_file in (node.split("=", 1) for node in nodes):
        versions.add(version)
        with open(exports_file) as file:
            wanted |= {name + ("@@" + version if version else "") for name in file.read().split()}
    symbols = [line.split() for line in
               output(nm, "--dynamic", "--defined-only", "--with-symbol-versions", library).splitlines()]
    found = {words[2] for words in symbols if words[1] == "T"}
    # The versions themselves are listed too, as absolute symbols.
    other = [words[2] for words in symbols if words[1] != "T" and words[2].split("@")[0] not in versions]
    needed = [] if readelf == "-" else re.findall(r"NEEDED.*\[(.*)\]", output(readelf, "-d", library))
    problems = (["missing: " + name for name in sorted(wanted - found)] +
                ["not to be exported: " + name for name in sorted(found - wanted)] +
                ["not a function: " + name for name in other] +
                ["needs " + name for name in needed if not ALLOWED.match(name)])
    if problems:
        sys.exit("\n".join(problems))


main()
