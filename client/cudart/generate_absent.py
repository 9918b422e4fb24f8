#!/usr/bin/env python3
"""Writes the stubs of all cudart functions that no object file defines.

usage: generate_absent.py NM EXPORTS OUTPUT OBJECT...

A function counts as implemented when an object defines a global symbol of its name, so there is no second
list to keep. A cuda* symbol that is not in EXPORTS is a misspelt name, and an error.
"""
import subprocess
import sys


def main():
    nm, exports_file, output, *objects = sys.argv[1:]
    with open(exports_file) as file:
        exports = file.read().split()
    listing = subprocess.run([nm, "--defined-only", "--extern-only", "--format=posix", *objects],
                             check=True, capture_output=True, text=True).stdout
    defined = {line.split()[0] for line in listing.splitlines() if len(line.split()) >= 2}
    strange = sorted(name for name in defined
                     if name.startswith(("cuda", "__cuda")) and name not in exports)
    if strange:
        sys.exit("not functions of libcudart: " + " ".join(strange))
    absent = [name for name in exports if name not in defined]
    lines = ["// Written by client/cudart/generate_absent.py: %d of cudart's %d functions." %
             (len(absent), len(exports)),
             '#include "client/cudart/absent.h"',
             "",
             'extern "C" {']
    # Callers pass arguments that these ignore: harmless where the caller cleans up, as on Linux.
    lines += ['int %s() { return slate::cudart::absent("%s"); }' % (name, name) for name in absent]
    lines += ['}  // extern "C"', ""]
    with open(output, "w") as file:
        file.write("\n".join(lines))


main()
