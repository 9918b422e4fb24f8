#!/usr/bin/env python3
"""Writes the stubs of all cudart functions that no object file defines.

usage: generate_absent.py NM OUTPUT OBJECT...

A function counts as implemented when an object defines a global symbol of its name, so there is no second list to keep;
one that is not needs a reason in coverage_notes.txt. A cuda* symbol that is not in exports.txt is a misspelt name, and an
error.
"""
import sys

import coverage_table


def main():
    nm, output, *objects = sys.argv[1:]
    exports = coverage_table.read_exports()
    defined = coverage_table.defined_functions(nm, objects)
    notes = coverage_table.Notes()
    strange = sorted(name for name in defined if name.startswith(("cuda", "__cuda")) and name not in exports)
    if strange:
        sys.exit("not functions of libcudart: " + " ".join(strange))
    absent = [(name, notes.reason(name)) for name in exports if name not in defined]
    unexplained = [name for name, reason in absent if reason is None]
    if unexplained:
        sys.exit("coverage_notes.txt does not say why these are absent: " + " ".join(unexplained))
    lines = ["// Written by client/cudart/generate_absent.py: %d of cudart's %d functions." % (len(absent), len(exports)),
             '#include "client/cudart/absent.h"', "", 'extern "C" {']
    # Callers pass arguments that these ignore: harmless where the caller cleans up, as on Linux.
    lines += ['int %s() { return slate::cudart::absent("%s", "%s"); }' % (name, name, reason)
              for name, reason in absent]
    lines += ['}  // extern "C"', ""]
    with open(output, "w") as file:
        file.write("\n".join(lines))


main()
