#!/usr/bin/env python3
"""Everything that the injector writes assembles: all forms of the kernels in PTX files and programs, through ptxas.

usage: ptxas_test.py SLATE_INJECT PTXAS JOBS FILE...    (skipped, exit status 77, where PTXAS is no program)
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
BUILTIN = re.compile(rb"\b(?:vprintf|__assertfail|malloc|free)\b")
FORM = re.compile(r"\.entry \S+__slate_(?:worker|slice|profile)")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return done.returncode, (done.stdout + done.stderr).strip()


def read(path):
    with open(path) as file:
        return file.read()


def assemble(ptxas, path):
    """ptxas's complaint, or nothing. Older targets than sm_90 are brought up to it, as the driver does."""
    target = re.search(r"^\.target\s+(sm_(\d+)\w*)", read(path), re.MULTILINE)
    if not target:
        return "no .target"
    architecture = target.group(1) if int(target.group(2)) >= 90 else "sm_90"
    status, words = run(ptxas, "-arch=" + architecture, "-o", path + ".cubin", path)
    return (words or "ended with %d" % status) if status != 0 else ""


def main():
    tool, ptxas, jobs, *files = sys.argv[1:]
    if not shutil.which(ptxas):
        print("skipped: no ptxas at %s" % (ptxas or "(none found)"))
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        problems, outputs = [], []

        def inject(number, file, *options):
            output = os.path.join(folder, "%d%s" % (number, "".join(options)))
            status, words = run(tool, "--form", "all", *options, "-o", output, file)
            made = glob.glob(output) + glob.glob(output + ".*")  # OUT, or OUT.0, OUT.1 ...
            outputs.extend((file, path) for path in made)
            if status != 0 or not made:
                problems.append("%s: slate-inject ended with %d: %s" % (file, status, words))

        for number, file in enumerate(files):
            inject(number, file)
            inject(number, file, "--fence")
            if BUILTIN.search(open(file, "rb").read()):
                inject(number, file, "--builtins")
                inject(number, file, "--builtins", "--fence")
        inject(0, files[0], "--max-registers", "32")
        inject(0, files[0], "--max-registers", "32", "--fence")
        forms = sum(len(FORM.findall(read(path))) for _, path in outputs)
        if forms == 0:
            problems.append("the injector added nothing to any file")
        with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
            complaints = pool.map(lambda made: assemble(ptxas, made[1]), outputs)
        problems += ["%s: %s" % (file, words) for (file, _), words in zip(outputs, complaints) if words]
    sys.exit("\n".join(problems) if problems else
             print("assembled %d modules of %d files with %d forms" % (len(outputs), len(files), forms)))


main()
