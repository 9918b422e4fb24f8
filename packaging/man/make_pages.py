"""Writes the man pages. What a page says of options, subcommands and settings comes from the programs themselves:
`--help` and `slated --print-config`. The rest is in the templates beside this file, in roff. A line of a template that
says @options PROGRAM@, @commands PROGRAM@ or @settings@ is replaced.

    python3 make_pages.py --out FOLDER --programs FOLDER --bench FILE --version V --date D --fronts FOLDER
"""

import argparse
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COMMANDS = "Subcommands"  # CLI11's title
COLUMN = 30  # where CLI11 puts descriptions


def escape(text):
    """As roff prints it unchanged. Every hyphen is one that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def bold(text):
    return "\\fB%s\\fR" % escape(text)


def italic(text):
    return "\\fI%s\\fR" % escape(text)


def entry(head, text):
    return ".TP\n%s\n%s\n" % (head, escape(text) or "\\&")


class Help:
    """What a program says of itself by --help: its description, and its options and subcommands by section."""

    def __init__(self, command):
        shown = subprocess.run(
            command + ["--help"], capture_output=True, text=True, check=True,
            env=dict(os.environ, COLUMNS="1000", PYTHONDONTWRITEBYTECODE="1"),
        )
        self.text = shown.stdout
        self.sections = {}
        lines = self.text.splitlines()
        section = None
        for number, line in enumerate(lines):
            title = re.fullmatch(r"([A-Za-z\[][\w \]\[.]*):", line)
            if title:
                section = self.sections.setdefault(title.group(1), [])
            elif section is not None and re.match(r" {2}\S", line):
                section.append(list(self.split(line, lines[number + 1] if number + 1 < len(lines) else "")))
            elif section and re.match(r" {4}\w[\w-]* {2,}\S", line):  # argparse's subcommands
                section.append(line.split(None, 1))
            elif section and line.startswith("    ") and line.strip():
                section[-1][1] = (section[-1][1] + " " + line.strip()).strip()
            elif line.strip():
                section = None
        positional = self.sections.get("positional arguments", [])
        if positional and positional[0][0].startswith("{"):  # argparse lists subcommands there
            self.sections[COMMANDS] = self.sections.pop("positional arguments")[1:]

    @staticmethod
    def split(line, following):
        """Name and description of an entry. A long name has its description in the next line."""
        wide = re.match(r" {2}(\S.*?) {2,}(\S.*)$", line)
        if wide:
            return wide.groups()
        has_description = line[COLUMN - 1 : COLUMN] == " " and not following.startswith(" " * 10)
        return (line[:COLUMN].strip(), line[COLUMN:]) if has_description else (line.strip(), "")


def head_of(name):
    """An option's names in bold, and what it takes in italics."""
    names, rest = re.fullmatch(r"(-[^ ]*(?:, --[^ ]*)?|[^ ]+) ?(.*)", name).groups()
    shown = ", ".join(bold(each) for each in re.split(r", ?", names))
    return shown + (" " + italic(rest) if rest else "")


def options(help_text):
    written = ""
    for title, entries in help_text.sections.items():
        if title == COMMANDS:
            continue
        if title.startswith("["):
            written += ".SS %s\n" % escape(title)
        written += "".join(entry(head_of(name), description) for name, description in entries)
    return written


def commands(command, shown):
    """What several commands take, then a subsection for each command."""
    found = list(walk(command, shown))
    takes = {}
    for name, _, entries in found:
        for each in entries:
            takes.setdefault(each, []).append(name)
    common = {each for each, names in takes.items() if len(names) > 2 and each[0].startswith("--")}
    written = ""
    for names in sorted({tuple(takes[each]) for each in common}, key=len, reverse=True):
        which = "Every command" if len(names) == len(found) else "Each of %s" % ", ".join(
            name.split(" ", 1)[1] for name in names)
        written += ".SS Options of %s\n%s takes:\n" % (
            "every command" if len(names) == len(found) else "several commands", escape(which))
        written += "".join(entry(head_of(each[0]), each[1]) for each in takes if takes[each] == list(names))
    for name, description, entries in found:
        written += ".SS %s\n%s.\n" % (escape(name), escape(sentence(description)))
        written += "".join(entry(head_of(each[0]), each[1]) for each in entries if each not in common)
    return written


def walk(command, shown):
    """Name, description and entries of each subcommand, and of theirs."""
    parent = Help(command)
    for name, description in parent.sections.get(COMMANDS, []):
        inner = Help(command + [name])
        entries = [tuple(each) for title, section in inner.sections.items() if title != COMMANDS
                   for each in section if not each[0].startswith("-h")]
        yield " ".join(shown + [name]), description, entries
        yield from walk(command + [name], shown + [name])


def sentence(text):
    text = text.rstrip(".")
    return text[:1].upper() + text[1:]


def settings(text):
    """slated.toml as --print-config documents it: comments above `key = value` and tables, arrays of tables at the end."""
    written, comment = "", []
    for line in text.splitlines() + [""]:
        key = re.match(r"(\w+) = (.*)$", line)
        table = re.match(r"\[([\w.]+)\]$", line)
        if line.startswith("#"):
            comment.append(line[1:].strip())
            continue
        if key:
            written += entry("%s = %s" % (bold(key.group(1)), italic(key.group(2))), "\n".join(comment))
        elif table:
            written += ".SS %s\n%s\n" % (escape("[%s]" % table.group(1)), escape("\n".join(comment)))
        else:
            written += array_of_tables(comment)
        comment = []
    return written


def array_of_tables(comment):
    """A comment that ends in an example, [[NAME]] and its keys; before that it has each key with a colon, and its help."""
    heads = [number for number, line in enumerate(comment) if line.startswith("[[")]
    if not heads:
        return ""
    written, name, told = ".SS %s\n" % escape(comment[heads[0]]), None, []
    for line in comment[: heads[0]] + ["end:"]:
        key = re.fullmatch(r"(\w+):", line)
        if not key:
            told.append(line)
            continue
        written += entry(bold(name), "\n".join(told)) if name else escape("\n".join(told)) + "\n"
        name, told = key.group(1), []
    return written + ".PP\n.EX\n%s\n.EE\n" % escape("\n".join(comment[heads[0] :]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--programs", required=True, help="folder of slated, slatectl and slate-inject")
    parser.add_argument("--bench", required=True, help="slate-bench")
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--fronts", required=True, help="folder of the stand-ins, once installed")
    arguments = parser.parse_args()

    def command(name):
        if name == "slate-bench":
            return [sys.executable, arguments.bench]
        return [os.path.join(arguments.programs, name)]

    def generated(match):
        what, name = match.group(1), match.group(2)
        if what == "options":
            return options(Help(command(name)))
        if what == "commands":
            return commands(command(name), [name]).replace(
                escape("build/release"), escape(arguments.fronts + "/bench"))
        printed = subprocess.run(command("slated") + ["--print-config"], capture_output=True, text=True, check=True)
        return settings(printed.stdout)

    os.makedirs(arguments.out, exist_ok=True)
    for template in sorted(glob.glob(os.path.join(HERE, "*.in"))):
        with open(template) as file:
            text = file.read()
        text = text.replace("@version@", arguments.version).replace("@date@", arguments.date).replace("@fronts@", escape(arguments.fronts))
        text = re.sub(r"^@(options|commands|settings)(?: ([\w-]+))?@\n", generated, text, flags=re.MULTILINE)
        page = os.path.join(arguments.out, os.path.basename(template)[: -len(".in")])
        with open(page, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
