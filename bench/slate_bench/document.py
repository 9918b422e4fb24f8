"""report, for a document: fills its marked regions with tables made from files of rows, or checks that they are what
the files say. A region begins with the kind of its table (document_tables.py) and its files, and ends with a mark:

    <!-- report: mix bench/results/2026-11-23-h200-slate-bench-mix.jsonl -->
    <!-- end -->

A file is looked for beside the document, then in each folder above it."""

import pathlib
import re

from . import document_tables, rows
from .programs import UsageError

REGION = re.compile(r"^(<!-- report: (\S+)\s([^>]*) -->\n)(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^<!-- (?:report:|end)", re.MULTILINE)


def find(name, document):
    """The file of that name nearest to the document."""
    for folder in pathlib.Path(document).resolve().parents:
        if (folder / name).is_file():
            return str(folder / name)
    raise UsageError("%s: no file %s" % (document, name))


def markdown(heading, lines):
    """A table's lines of text."""
    written = [heading, ["---"] * len(heading), *lines]
    return ["| %s |" % " | ".join(str(cell).replace("|", "\\|") for cell in line) for line in written]


def source(name, found):
    """Where the rows come from, as far as they say."""
    machines = [row["machine"] for row in found if "machine" in row]
    commits = [row["commit"] for row in found if "commit" in row]
    parts = ["Raw: `%s`" % name, *dict.fromkeys("%(gpu)s, driver %(driver)s" % each for each in machines)]
    if commits:
        parts.append("commit " + " and ".join(dict.fromkeys(commits)))
    return ", ".join(parts) + "."


def region(kind, names, document):
    """The text between a region's marks."""
    if kind not in document_tables.KINDS:
        raise UsageError("%s: no table of the kind %s" % (document, kind))
    try:
        files = [rows.read([find(name, document)]) for name in names]
        table = document_tables.KINDS[kind](*files)
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError("%s: %s is no table of %s: %r" % (document, kind, ", ".join(names), error)) from error
    if not table or not table[1]:
        raise UsageError("%s: nothing for %s in %s" % (document, kind, ", ".join(names)))
    sources = [source(name, found) for name, found in zip(names, files, strict=True)]
    return "\n".join([*markdown(*table), "", *sources]) + "\n"


def filled(text, document):
    """The document's text with every region made anew, and which regions differ."""
    stale = []

    def fill(match):
        mark, kind, names, old = match.groups()
        made = region(kind, names.split(), document)
        if made != old:
            stale.append("%s of %s" % (kind, " ".join(names.split())))
        return "%s%s<!-- end -->" % (mark, made)

    if len(MARK.findall(text)) != 2 * len(REGION.findall(text)):
        raise UsageError("%s: a region without its beginning or its end" % document)
    return REGION.sub(fill, text), stale


def run(document, check):
    """Fills the document, or only checks it: 1 where it is not what the files say."""
    try:
        with open(document, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(str(error)) from error
    made, stale = filled(text, document)
    for each in stale:
        print("%s: %s: %s" % (document, "not what its files say" if check else "filled", each))
    if check:
        return 1 if stale else 0
    if stale:
        with open(document, "w", encoding="utf-8") as file:
            file.write(made)
    return 0
