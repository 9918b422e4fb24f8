"""Fails where a man page lacks an option or subcommand of --help, or a key of `slated --print-config`. It reads both by
rules of its own, and not by those of make_pages.py. With mandoc at hand it also reads the pages for mistakes."""

import argparse
import os
import re
import shutil
import subprocess
import sys


def said(command):
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          env=dict(os.environ, COLUMNS="1000", PYTHONDONTWRITEBYTECODE="1")).stdout


def words_of_help(command):
    """Options and names of subcommands, of the subcommands too."""
    text = said(command + ["--help"])
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) | set(re.findall(r"^  (-[a-zA-Z])\b", text, re.MULTILINE))
    inner = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    names = re.findall(r"^  ([a-z]+) ", inner.group(1), re.MULTILINE) if inner else []
    listed = re.search(r"^\s+\{([a-z,]+)\}", text, re.MULTILINE)
    names += listed.group(1).split(",") if listed else []
    for name in names:
        found |= {" ".join(command[1:] + [name]) if len(command) == 1 else name} | words_of_help(command + [name])
    return found


def text_of(page):
    with open(page) as file:
        text = file.read()
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def complaints(arguments):
    def page(name):
        return os.path.join(arguments.pages, name)

    pages = [("slated", 8), ("slatectl", 1), ("slate-inject", 1), ("slate-bench", 1)]
    for name, section in pages:
        path, text = page("%s.%d" % (name, section)), text_of(page("%s.%d" % (name, section)))
        program = [sys.executable, arguments.bench] if name == "slate-bench" else [os.path.join(arguments.programs, name)]
        wanted = words_of_help(program)
        if len(wanted) < 5:
            yield "%s --help: only %s was found" % (name, sorted(wanted))
        for word in sorted(wanted):
            if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), text):
                yield "%s has no %s" % (os.path.basename(path), word)
    printed = said([os.path.join(arguments.programs, "slated"), "--print-config"])
    keys = re.findall(r"^(?:# )?(\w+) = ", printed, re.MULTILINE)
    tables = re.findall(r"^(?:# )?(\[[\w.\[\]]+\])$", printed, re.MULTILINE)
    text = text_of(page("slated.toml.5"))
    for key in keys + tables:
        if not re.search(r"(?<![\w.])%s(?!\w)" % re.escape(key), text):
            yield "slated.toml.5 has no %s" % key
    if len(keys) < 40 or len(tables) < 4:
        yield "slated --print-config: only %d keys and %d tables were found" % (len(keys), len(tables))
    if shutil.which("mandoc"):
        read = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"] +
                              [page("%s.%d" % each) for each in pages + [("slated.toml", 5)]], capture_output=True, text=True)
        if read.returncode != 0:
            yield read.stdout + read.stderr


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--pages", required=True)
parser.add_argument("--programs", required=True)
parser.add_argument("--bench", required=True)
wrong = list(complaints(parser.parse_args()))
print("\n".join(wrong) or "the man pages have all that the programs say")
sys.exit(1 if wrong else 0)
