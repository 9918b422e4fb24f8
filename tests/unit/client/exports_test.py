#!/usr/bin/env python3
"""A library exports the functions of cudart under cudart's symbol version, all of them and nothing else.

usage: exports_test.py NM LIBRARY EXPORTS
"""
import subprocess
import sys


def main():
    nm, library, exports_file = sys.argv[1:]
    with open(exports_file) as file:
        wanted = {name + "@@libcudart.so.13" for name in file.read().split()}
    listing = subprocess.run([nm, "--dynamic", "--defined-only", "--with-symbol-versions", library],
                             check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in listing.splitlines()]
    found = {words[2] for words in symbols if words[1] == "T"}
    # The version itself is listed too, as an absolute symbol.
    other = [words[2] for words in symbols if words[1] != "T" and not words[2].startswith("libcudart.so.13")]
    problems = (["missing: " + name for name in sorted(wanted - found)] +
                ["not cudart's: " + name for name in sorted(found - wanted)] +
                ["not a function: " + name for name in other])
    if problems:
        sys.exit("\n".join(problems))


main()
