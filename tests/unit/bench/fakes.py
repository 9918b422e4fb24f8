"""A build folder and an MPS made of small scripts, to follow without a GPU what slate-bench does on one."""

import os
import stat
import sys

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bench")
sys.path.insert(0, BENCH)

# As kernels/common/program.cc: ready file, barrier, a line of JSON. One repetition takes a millisecond, twice that where
# the environment shares the device out. FAKE_LOG gets a line of what it found in its environment.
PROGRAM = """#!{python}
import json, os, sys, time
def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default
name = os.path.basename(sys.argv[0]).removesuffix(".so")
if name == os.environ.get("FAKE_FAILING"):
    sys.exit("no such kernel image")
reps, barrier = int(option("--reps", "1")), option("--barrier", None)
# FAKE_WRONG, "PROGRAM VARIABLE PART": its result is wrong where that variable of its environment has that part.
wrong = os.environ.get("FAKE_WRONG", "- - -").split()
digest = "0" * 16 if wrong[0] == name and wrong[2] in os.environ.get(wrong[1], "") else "0123456789abcdef"
pipes = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "")
if os.path.exists(os.path.join(pipes, "nvidia-cuda-mps-control.pid")):
    open(os.path.join(pipes, "client.%d" % os.getpid()), "w").close()
wanted = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
shown = {{key: os.environ[key] for key in wanted if key in os.environ}}
if "FAKE_LOG" in os.environ:
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps(dict(shown, program=name, reps=reps, barrier=barrier)) + "\\n")
if barrier:
    open("%s.%d" % (barrier, os.getpid()), "w").close()
    while not os.path.exists(barrier):
        time.sleep(0.001)
started = time.monotonic()
time.sleep(1e-3 * reps * float(os.environ.get("FAKE_SLOWNESS", "1")))
# One write: green_pair's threads share a stream, fakes only the pipe behind it.
os.write(1, json.dumps({{"program": name, "device": "fake", "size": int(option("--size", "1")), "reps": reps,
                  "kernel_ms": 1.0, "total_ms": 5.0, "loop_started_ms": 1e3 * started, "loop_ms": 1e3 * (time.monotonic() - started),
                  "hash": digest, "checked": 0, "max_error": 0, "result": "ok"}}).encode() + b"\\n")
"""

# Starts a process for every program, as green_pair starts a thread.
GREEN_PAIR = """#!{python}
import json, subprocess, sys
pieces = [[]]
for word in sys.argv[1:]:
    pieces.append([]) if word == "--" else pieces[-1].append(word)
shares = [float(share) for share in pieces[0][pieces[0].index("--shares") + 1].split(",")]
print(json.dumps({{"sms": [round(132 * share / sum(shares)) for share in shares]}}), flush=True)
sys.exit(max(child.wait() for child in [subprocess.Popen(piece) for piece in pieces[1:]]))
"""

# -d leaves a process behind and its id in the directory; afterwards it takes commands on its standard input.
MPS_CONTROL = """#!{python}
import os, signal, subprocess, sys
pid_file = os.path.join(os.environ["CUDA_MPS_PIPE_DIRECTORY"], "nvidia-cuda-mps-control.pid")
if sys.argv[1:] == ["-d"]:
    if os.environ.get("FAKE_MPS") == "refuses":
        sys.exit("Cannot find MPS control daemon process")
    nowhere = subprocess.DEVNULL
    daemon = subprocess.Popen(["sleep", "600"], stdout=nowhere, stderr=nowhere, start_new_session=True)
    open(pid_file, "w").write(str(daemon.pid))
else:
    command = sys.stdin.read().strip()
    pid = open(pid_file).read()
    if command == "get_server_list" and os.environ.get("FAKE_MPS") != "serverless":
        print(pid)
    if command == "get_client_list " + pid and os.environ.get("FAKE_MPS") != "missed":
        clients = [name[7:] for name in os.listdir(os.path.dirname(pid_file)) if name.startswith("client.")]
        print("\\n".join(client for client in clients if os.path.exists("/proc/" + client)))
    if command == "quit" and os.environ.get("FAKE_MPS") != "stubborn":
        os.kill(int(pid), signal.SIGTERM)
"""


def write_script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text.format(python=sys.executable))
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def fake_build(root, programs):
    """A build folder with these programs, native and green, and a bin folder with MPS's tool: (build, tools)."""
    build, tools = os.path.join(root, "build"), os.path.join(root, "tools")
    for name in programs:
        write_script(os.path.join(build, "bin", "shared", name), PROGRAM)
        write_script(os.path.join(build, "bin", "green", name + ".so"), PROGRAM)
    write_script(os.path.join(build, "bin", "green_pair"), GREEN_PAIR)
    write_script(os.path.join(tools, "nvidia-cuda-mps-control"), MPS_CONTROL)
    return build, tools
