#!/usr/bin/env python3
"""Writes all functions of libcuda that no source file defines, and the table of cuGetProcAddress.

usage: generate_functions.py NM OUTPUT DECLARATIONS OBJECT...

functions.txt says which names there are. One counts as implemented when an object defines a global symbol of its name, so
there is no second list to keep. DECLARATIONS is the preprocessed cuda.h, which gives the parameters. Written are:

- a stub for every name that is not implemented, with its reason from coverage_notes.txt, if it has one;
- the variants for per-thread default streams (_ptds, _ptsz) of what is implemented;
- the table, sorted by name.

A cu* symbol that is not in functions.txt is a misspelt name, and an error, as is a variant that is not left to us.
"""
import os
import re
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(FOLDER, "..", "cudart"))
sys.dont_write_bytecode = True
import coverage_table  # noqa: E402

VARIANT = coverage_table.VARIANT
DECLARATION = re.compile(r"\bCUresult\s+(cu\w+)\s*\(([^;()]*)\)\s*;")
PARAMETER = re.compile(r"(.*?[\s*&])(\w+)((?:\[\w*\])*)$", re.S)


def read_table():
    """The exported names, and {name: [(version, symbol, per-thread symbol)]} of those that cuGetProcAddress gives."""
    exported, given = set(), {}
    with open(os.path.join(FOLDER, "functions.txt")) as file:
        for line in file:
            if line.startswith("#"):
                continue
            name, version, *symbols = line.split()
            exported.update(symbol for symbol in symbols if symbol != "-")
            if version != "-":
                given.setdefault(name, []).append((int(version), *symbols))
    return exported, given


def read_parameters(declarations):
    """{function: [(type, name, array bounds)]} of what cuda.h declares."""
    with open(declarations) as file:
        text = file.read()
    found = {}
    for function, parameters in DECLARATION.findall(text):
        words = [" ".join(each.split()) for each in parameters.split(",")]
        if words in ([""], ["void"]):
            words = []
        found[function] = [PARAMETER.match(each).groups() for each in words]
    return found


def types(parameters):
    return ", ".join(kind.strip() + bounds for kind, _, bounds in parameters)


def stub(name, parameters, reason):
    # For a function that cuda.h does not declare the arguments are ignored: the caller cleans up, as on Linux.
    return 'CUresult %s(%s) { return slate::driver::absent("%s", "%s"); }' % (name, types(parameters), name, reason)


def variant(name, base, parameters):
    signature = ", ".join(kind + name + bounds for kind, name, bounds in parameters)
    arguments = ", ".join(name for _, name, _ in parameters)
    return ("CUresult %s(%s) {\n  const slate::driver::PerThreadStreams per_thread_streams;\n  return %s(%s);\n}" %
            (name, signature, base, arguments))


def address(symbol):
    return "nullptr" if symbol == "-" else "reinterpret_cast<void*>(&%s)" % symbol


def table_lines(given):
    versions, names = [], []
    for name in sorted(given):
        rows = sorted(given[name])
        names.append('    {"%s", {kVersions + %d, %d}},' % (name, len(versions), len(rows)))
        versions += ["    {%d, %s, %s}," % (version, address(legacy), address(per_thread))
                     for version, legacy, per_thread in rows]
    return ["namespace slate::driver {", "namespace {", "",
            "const FunctionVersion kVersions[] = {", *versions, "};", "",
            "constinit const NamedFunction kNames[] = {", *names, "};", "", "}  // namespace", "",
            "std::span<const NamedFunction> named_functions() {", "  return kNames;", "}", "",
            "}  // namespace slate::driver"]


def main():
    nm, output, declarations, *objects = sys.argv[1:]
    exported, given = read_table()
    parameters = read_parameters(declarations)
    defined = {name for name in coverage_table.defined_functions(nm, objects) if re.match(r"cu[A-Z]|cudbg", name)}
    if defined - exported:
        sys.exit("not functions of libcuda: " + " ".join(sorted(defined - exported)))
    written_by_hand = sorted(name for name in defined if VARIANT.search(name))
    if written_by_hand:
        sys.exit("to be left to generate_functions.py: " + " ".join(written_by_hand))

    notes = coverage_table.Notes(FOLDER)
    stubs, variants = [], []
    for name in sorted(exported - defined):
        base = VARIANT.sub("", name)
        if base != name and base in defined:
            variants.append(variant(name, base, parameters[name]))
        else:
            stubs.append(stub(name, parameters.get(name, []), notes.reason(name) or ""))
    # Declarations of what other headers of the toolkit declare. Their parameters do not matter for an address.
    declared = ["CUresult %s();" % name for name in sorted(defined - parameters.keys())]
    lines = ["// Written by client/driver/generate_functions.py: stubs of %d of libcuda's %d functions, %d variants" %
             (len(stubs), len(exported), len(variants)),
             "// for per-thread default streams, and the table of cuGetProcAddress.",
             '#include "client/driver/absent.h"', '#include "client/driver/front.h"',
             '#include "client/driver/functions.h"', "",
             'extern "C" {', *declared, "", *stubs, "", *variants, '}  // extern "C"', "", *table_lines(given), ""]
    with open(output, "w") as file:
        file.write("\n".join(lines))


main()
