"""The running part of scripts/demo: slated, two programs at once, a table. Arguments: build folder, an empty
work folder, device. Exits 0 only if both results are right and nothing is left behind."""

import glob
import json
import os
import signal
import subprocess
import sys
import time

build, work, device = sys.argv[1:4]
runtime = os.path.join(work, "run")
environment = dict(os.environ, SLATE_RUNTIME_DIR=runtime, SLATE_CACHE_DIR=os.path.join(work, "cache"),
                   SLATE_STATE_DIR=os.path.join(work, "state"))
slatectl = os.path.join(build, "bin", "slatectl")


def status():
    reply = subprocess.run([slatectl, "status", "--json"], env=environment, capture_output=True, text=True)
    return json.loads(reply.stdout) if reply.returncode == 0 else None


def wait_until_serving(daemon):
    deadline = time.time() + 60
    while time.time() < deadline:
        if daemon.poll() is not None:
            sys.exit("slate: slated ended with code %d; its words are above" % daemon.returncode)
        state = status()
        if state and state.get("device", {}).get("name"):
            return state
        time.sleep(0.1)
    sys.exit("slate: slated was not ready after 60 s")


def main():
    daemon = subprocess.Popen(
        [os.path.join(build, "bin", "slated"), "--device", device, "--runtime-dir", runtime, "--log-level", "warning"],
        env=environment,
    )
    try:
        state = wait_until_serving(daemon)
        simulated = state["device"]["simulated"]
        print("slated serves %s\n" % state["device"]["name"])
        # One program of each kind: linked with -lslate, and linked to the shared cudart and started by slatectl.
        commands = {
            "black_scholes (linked with -lslate)": [os.path.join(build, "bin/slate/black_scholes")],
            "sgemm (linked to cudart, slatectl run)": [slatectl, "run", "--", os.path.join(build, "bin/shared/sgemm")],
        }
        extra = ["--json"] if simulated else ["--json", "--reps", "20"]
        running = {
            name: subprocess.Popen(command + extra, env=environment, stdout=subprocess.PIPE, text=True)
            for name, command in commands.items()
        }
        row = "%-42s %-24s %12s  %s"
        print(row % ("program", "device", "kernel time", "result check"))
        good = True
        for name, process in running.items():
            out, _ = process.communicate(timeout=300)
            try:
                report = json.loads(out)
            except ValueError:
                report = {"device": "-", "kernel_ms": float("nan"), "result": "no report"}
            ok = process.returncode == 0 and report["result"] == "ok"
            good = good and ok
            print(row % (name, report["device"], "%.3f ms" % report["kernel_ms"], report["result"]))
        served = status()["totals"]["sessions_served"]
        print("\nboth ran at the same time in %d sessions of one slated" % served)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(timeout=60)
    left = glob.glob(os.path.join(runtime, "*"))
    if left:
        print("left behind: %s" % ", ".join(left))
    return 0 if good and not left and daemon.returncode == 0 else 1


sys.exit(main())
