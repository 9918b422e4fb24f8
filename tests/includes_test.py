"""Fails on an #include against the arrows, on CUDA headers where they do not belong, on a long README of a folder, and
on two headers that define classes of one name.

The arrows between top folders are those of docs/architecture.md: ALLOWED. Below them each README has its own:

    May include: base, device, injector/ptx.       the headers in these folders, not in folders below them
    May include nothing of ...                     no other folder

A folder may always include its own headers. A folder whose README has no such line has that of its nearest parent.

Of two classes of one name and namespace the linker may take the inline functions of either: undefined behaviour without a word.
"""

import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ALLOWED = {
    "base": [],
    "ipc": ["base"],
    "injector": ["base"],
    "device": ["base", "injector/ptx"],
    "scheduler": ["base"],
    "kernels": [],
    "client": ["base", "ipc", "injector/source", "injector/cache", "injector/link"],
    "daemon": ["base", "ipc", "injector", "device", "scheduler"],
    "tools": ["base", "ipc", "injector", "client/session"],
}
CUDA_HEADER = re.compile(r"(cuda|cuda_.*|driver_types|vector_types|nvrtc|crt/.*)\.h$")
CUDA_FOLDERS = ("device/cuda/", "kernels/", "client/cudart/", "client/driver/", "client/occupancy/", "injector/source/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
MAY_INCLUDE = re.compile(r"May include(?: nothing|: ([a-z_/, \n]+)\.)")
README_LINES = 25
# As clang-format writes them: what is in a namespace is not indented.
NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+) \{$")
CLASS = re.compile(r"^(?:class|struct|union|enum class|enum)(?: alignas\(.*?\)| SLATE_EXPORT)? (\w+)(?: final)?(?: :.*)? \{")


def files():
    for folder in ALLOWED:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            yield from (os.path.relpath(os.path.join(path, name), ROOT) for name in names)


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def arrows(readmes):
    """What each README says: its folder, and the folders whose headers may be included there."""
    found = {}
    for path in readmes:
        line = MAY_INCLUDE.search(read(path))
        if line:
            found[os.path.dirname(path)] = re.split(r",\s*", line.group(1)) if line.group(1) else []
    return found


def nearest(folder, found):
    while folder not in found:
        folder = os.path.dirname(folder)
    return found[folder]


def classes(path):
    """The classes that a header defines outside of others, with their namespaces."""
    spaces = []
    before = ""
    for line in read(path).splitlines():
        space, kind = NAMESPACE.match(line), CLASS.match(line)
        if space:
            spaces.append(space.group(1))
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif kind and not before.startswith("template"):
            yield "::".join(spaces + [kind.group(1)])
        before = line


def complaints_about_names(headers):
    first = {}
    for path in headers:
        for name in classes(path):
            if first.setdefault(name, path) != path:
                yield "%s defines %s, as %s does" % (path, name, first[name])


def complaints():
    readmes = [path for path in files() if path.endswith("/README.md")]
    found = arrows(readmes)
    for folder in ALLOWED:
        if folder not in found:
            yield '%s/README.md has no line "May include: ..."' % folder
            found[folder] = []
    for folder, named in found.items():
        for name in named:
            if not os.path.isdir(os.path.join(ROOT, name)):
                yield "%s/README.md names %s, which is no folder" % (folder, name)
    for path in readmes:
        lines = len(read(path).splitlines())
        if lines > README_LINES:
            yield "%s has %d lines, more than %d" % (path, lines, README_LINES)
    for path in files():
        if path.endswith((".h", ".cc", ".cu", ".cuh", ".l")):
            yield from complaints_about(path, nearest(os.path.dirname(path), found))
    yield from complaints_about_names(path for path in sorted(files()) if path.endswith(".h"))


def complaints_about(path, named):
    folder, top = os.path.dirname(path), path.split("/")[0]
    for _, header in INCLUDE.findall(read(path)):
        first, of = header.split("/")[0], os.path.dirname(header)
        if first in ALLOWED and first != top:
            if not any(header.startswith(allowed + "/") for allowed in ALLOWED[top]):
                yield "%s includes %s: %s/ may include only %s" % (path, header, top, ALLOWED[top] or "itself")
        if first in ALLOWED and of != folder and of not in named:
            yield "%s includes %s: by its README %s/ may include only %s" % (path, header, folder, named or "itself")
        if first in ("tests", "bench"):
            yield "%s includes %s: nothing includes a leaf" % (path, header)
        if CUDA_HEADER.match(header) and not path.startswith(CUDA_FOLDERS):
            yield "%s includes %s: CUDA's headers belong in %s" % (path, header, ", ".join(CUDA_FOLDERS))


wrong = list(complaints())
print("\n".join(wrong) or "all includes follow the arrows")
sys.exit(1 if wrong else 0)
