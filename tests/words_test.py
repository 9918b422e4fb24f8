"""Fails when too many sentences are long: docs/writing.md asks for about 25 words in one. Counted are the prose of all
documents (no tables, code or headings) and the comments of all headers (no tables or code: lines that are
indented or have columns). A number, a word between backquotes and a
link's text count as one word each.

    python3 tests/words_test.py                     # the test
    python3 tests/words_test.py --list 35 FILE...   # the sentences of these files that are longer, longest first
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LONG = 35  # words
MOST_LONG = 0.04  # share of the sentences
LIMIT = 60  # words that no sentence may have

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_\[`A-Z0-9])")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|Fig|No|approx)\.$")


def paragraphs_of_document(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraph = []
    for line in text.splitlines() + [""]:
        stripped = line.strip()
        is_item = re.match(r"([-*]|\d+\.)\s", stripped)
        is_prose = stripped and not stripped.startswith(("|", "#", "<", ">", "!["))
        if paragraph and (is_item or not is_prose):
            yield " ".join(paragraph)
            paragraph = []
        if is_prose and not line.startswith("    "):
            paragraph.append(re.sub(r"^([-*]|\d+\.)\s+", "", stripped))


def paragraphs_of_header(text):
    paragraph = []
    for line in text.splitlines() + [""]:
        comment = re.match(r"\s*///?<?(?:\s(.*))?$", line)
        words = (comment.group(1) or "") if comment else ""
        is_table = words.startswith("  ") or re.search(r"\S\s{3,}\S", words)
        words = "" if is_table else words.strip()
        if paragraph and (not words or words.startswith(("- ", "* "))):
            yield " ".join(paragraph)
            paragraph = []
        if words:
            paragraph.append(words)
        elif not comment:
            trailing = re.search(r"[;{},)]\s*///?<?\s(.*)$", line)
            if trailing:
                yield trailing.group(1)


def sentences(paragraph):
    paragraph = re.sub(r"`[^`]*`", "code", paragraph)
    paragraph = re.sub(r"\[([^\]]*)\]\([^)]*\)", "link", paragraph)
    start = 0
    for end in SENTENCE_END.finditer(paragraph):
        if ABBREVIATION.search(paragraph[start : end.start()]):
            continue
        yield paragraph[start : end.start()]
        start = end.end()
    yield paragraph[start:]


def words(sentence):
    return len([word for word in sentence.split() if re.search(r"[A-Za-z0-9]", word)])


def sentences_of(path):
    with open(os.path.join(ROOT, path)) as file:
        text = file.read()
    find = paragraphs_of_document if path.endswith(".md") else paragraphs_of_header
    for paragraph in find(text):
        yield from (sentence for sentence in sentences(paragraph) if words(sentence) > 0)


def sources(ending):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*" + ending],
                            cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [path for path in listed.stdout.splitlines() if os.path.exists(os.path.join(ROOT, path))]
    found = []  # a copy without git's folder
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(ending)]
    return found


def check(kind, paths):
    lengths = [(words(sentence), path, sentence) for path in paths for sentence in sentences_of(path)]
    long = [entry for entry in lengths if entry[0] > LONG]
    share = len(long) / max(1, len(lengths))
    print("%s: %d sentences in %d files, %.1f %% over %d words" % (kind, len(lengths), len(paths), 100 * share, LONG))
    over = sorted((entry for entry in long if entry[0] > LIMIT), reverse=True)
    for length, path, sentence in over[:20]:
        print("  %s: %d words: %s" % (path, length, sentence[:100]))
    return share <= MOST_LONG and not over


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=int, metavar="WORDS")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if arguments.list is not None:
        entries = [(words(sentence), path, sentence) for path in arguments.files
                   for sentence in sentences_of(os.path.relpath(os.path.abspath(path), os.path.abspath(ROOT)))]
        for length, path, sentence in sorted(entries, reverse=True):
            if length > arguments.list:
                print("%d %s: %s" % (length, path, sentence))
        return 0
    good = [check("documents", sources(".md")), check("header comments", sources(".h"))]
    if not all(good):
        print("at most %.0f %% may be over %d words, and none over %d: see docs/writing.md" % (100 * MOST_LONG, LONG, LIMIT))
    return 0 if all(good) else 1


sys.exit(main())
