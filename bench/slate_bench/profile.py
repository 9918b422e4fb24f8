"""What slate has learnt of the programs' kernels by the end of a run, as rows: FLOPs and bytes for the tables."""

import json
import os
import subprocess


def write_profiles(session):
    """One row a kernel, of the first of slate's configurations that ran."""
    for configuration in session.configurations:
        if configuration.name.startswith("slate-") and configuration.daemon is not None:
            break
    else:
        return
    done = subprocess.run([os.path.join(session.build, "bin", "slatectl"), "profile", "--json"],
                          env=configuration.environment(0, None), capture_output=True, text=True)
    if done.returncode:
        session.say("slatectl profile: %s" % done.stderr.strip())
        return
    for kernel in json.loads(done.stdout)["kernels"]:
        alone = [found["ms"] for found in kernel["alone"].values()]
        if alone:
            session.writer.write(
                "profile", configuration=configuration.name, program=program_of(kernel["name"], session.programs),
                kernel=kernel["name"], ms=min(alone), flops=kernel["flops"], bytes=kernel["bytes"],
                instructions=kernel["instructions"], **{"class": kernel["class"]})


def program_of(kernel, programs):
    """The program whose name the kernel's contains, the longest such; null if none does."""
    found = [name for name in programs if name in kernel]
    return max(found, key=len) if found else None
