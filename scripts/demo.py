"""The running part of scripts/demo: slated, two programs at once, a table. Arguments: build folder, an empty
work folder, device. Exits 0 only if both results are right, both ran at the same time, and nothing is left behind; 130 when
it is interrupted, with nothing left behind either."""

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
started = []  # processes, which must not outlive this one
is_starting, asked_to_end = False, False


def end(*_):
    global asked_to_end
    asked_to_end = True
    if not is_starting:
        sys.exit(130)


def start(command, **keywords):
    """A signal that comes meanwhile waits until the process is known."""
    global is_starting
    is_starting = True
    try:
        started.append(subprocess.Popen(command, env=environment, **keywords))
    finally:
        is_starting = False
    if asked_to_end:
        sys.exit(130)
    return started[-1]


def status():
    asked = start([slatectl, "status", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out, _ = asked.communicate()
    started.remove(asked)
    return json.loads(out) if asked.returncode == 0 else None


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


def start_together(commands):
    """The programs, of which each waits until all have their inputs on the device: {name: process}."""
    go = os.path.join(work, "go")
    running = {
        name: start(command + ["--json", "--barrier", go], stdout=subprocess.PIPE, text=True)
        for name, command in commands.items()
    }
    deadline = time.time() + 60
    # One that cannot start says so itself; the other must not wait for it.
    while len(glob.glob(go + ".*")) < len(running) and all(each.poll() is None for each in running.values()):
        if time.time() > deadline:
            break
        time.sleep(0.01)
    open(go, "w").close()
    return running


def report_of(process):
    out, _ = process.communicate(timeout=300)
    try:
        return json.loads(out)
    except ValueError:
        return {"device": "-", "kernel_ms": float("nan"), "result": "no report"}


def overlap_ms(reports):
    """For how long all of them were at their kernels; not above 0 if one ended before another began."""
    if not all("loop_ms" in report for report in reports):
        return 0.0
    begins = [report["loop_started_ms"] for report in reports]
    return min(report["loop_started_ms"] + report["loop_ms"] for report in reports) - max(begins)


def run_programs(simulated):
    """Whether all is right with them."""
    # One program of each kind: linked with -lslate, and linked to the shared cudart and started by slatectl.
    commands = {
        "black_scholes (linked with -lslate)": [os.path.join(build, "bin/slate/black_scholes")],
        "sgemm (linked to cudart, slatectl run)": [slatectl, "run", "--", os.path.join(build, "bin/shared/sgemm")],
    }
    if not simulated:
        commands = {name: command + ["--reps", "200"] for name, command in commands.items()}
    row = "%-42s %-24s %12s  %s"
    running = start_together(commands)
    reports = {name: report_of(process) for name, process in running.items()}
    print(row % ("program", "device", "kernel time", "result check"))
    for name, report in reports.items():
        print(row % (name, report["device"], "%.3f ms" % report["kernel_ms"], report["result"]))
    served = status()["totals"]["sessions_served"]
    together = overlap_ms(reports.values())
    if together > 0:
        print("\nboth ran at the same time for %.1f ms, in %d sessions of one slated" % (together, served))
    else:
        print("\nthe two did NOT run at the same time")
    right = all(process.returncode == 0 for process in running.values())
    return right and together > 0 and all(report["result"] == "ok" for report in reports.values())


def main():
    # As exceptions, so that all is ended: by themselves they would end this script alone.
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for each in signals:
        signal.signal(each, end)
    slated = os.path.join(build, "bin", "slated")
    try:
        daemon = start([slated, "--device", device, "--runtime-dir", runtime, "--log-level", "warning"])
        state = wait_until_serving(daemon)
        print("slated serves %s\n" % state["device"]["name"])
        good = run_programs(state["device"]["simulated"])
    finally:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        for process in started[1:]:
            process.kill()
            process.wait()
        for process in started[:1]:
            process.terminate()
            process.wait(timeout=60)
    left = glob.glob(os.path.join(runtime, "*"))
    if left:
        print("left behind: %s" % ", ".join(left))
    return 0 if good and not left and daemon.returncode == 0 else 1


sys.exit(main())
