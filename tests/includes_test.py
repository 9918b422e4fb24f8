"""Fails on an #include against the arrows of docs/architecture.md, and on CUDA headers where they do not belong."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
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
CUDA_FOLDERS = ("device/cuda/", "kernels/", "client/cudart/", "injector/source/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def sources():
    for folder in ALLOWED:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith((".h", ".cc", ".cu", ".cuh", ".l")):
                    yield folder, os.path.relpath(os.path.join(path, name), ROOT)


def complaints():
    for folder, path in sources():
        with open(os.path.join(ROOT, path)) as file:
            text = file.read()
        for _, header in INCLUDE.findall(text):
            first = header.split("/")[0]
            if first in ALLOWED and first != folder:
                if not any(header.startswith(allowed + "/") for allowed in ALLOWED[folder]):
                    yield "%s includes %s: %s/ may include only %s" % (path, header, folder, ALLOWED[folder] or "itself")
            if first in ("tests", "bench"):
                yield "%s includes %s: nothing includes a leaf" % (path, header)
            if CUDA_HEADER.match(header) and not path.startswith(CUDA_FOLDERS):
                yield "%s includes %s: CUDA's headers belong in %s" % (path, header, ", ".join(CUDA_FOLDERS))


found = list(complaints())
print("\n".join(found) or "all includes follow the arrows")
sys.exit(1 if found else 0)
