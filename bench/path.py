"""What a call costs through slated against natively, in turns on one device: launches, queries, copies, start-up, many
clients at once, idle sessions. Prints medians, 99th percentiles and ratios; JSON lines go to --out. Needs a build with
kernels; on sim there is no native column, and --small makes a smoke test of it.

    python3 bench/path.py --build build/release --device cuda --rounds 5 --out path.jsonl

Configurations: native; slated, the program linked with libslate; driver, the program with NVIDIA's cudart over slate's libcuda.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import time

from slate_bench.daemons import private_slated, with_driver_front, without_mps
from slate_bench.names import human


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--device", default="cuda", help="as for slated --device")
    parser.add_argument("--rounds", type=int, default=3, help="how often native and slated take turns")
    parser.add_argument("--clients", type=int, default=64, help="that launch at once")
    parser.add_argument("--seconds", type=float, default=2, help="of launching at once, and of being idle")
    parser.add_argument("--parts", default="ring,engine,calls,bandwidth,cold,start,clients,idle,stress", help="which to do")
    parser.add_argument("--commands", type=int, default=40000, help="of the stress test")
    parser.add_argument("--small", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--out", help="file for JSON lines")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
OUT = open(ARGUMENTS.out, "w") if ARGUMENTS.out else None
ON_GPU = ARGUMENTS.device.startswith("cuda")


def program(flavour, name="path_bench"):
    return os.path.join(ARGUMENTS.build, "bin", "slate" if flavour == "slated" else "shared", name)


def note(row):
    if OUT:
        OUT.write(json.dumps(row) + "\n")
        OUT.flush()


def run(flavour, words, environment):
    reply = subprocess.run([program(flavour)] + words, env=environment, capture_output=True, text=True, timeout=900)
    if reply.returncode != 0:
        sys.exit("%s %s failed (%d): %s%s" % (flavour, words, reply.returncode, reply.stdout, reply.stderr))
    rows = [json.loads(line) for line in reply.stdout.splitlines()]
    for row in rows:
        note(dict(row, configuration=flavour))
    return rows


def native_environment(environment):
    """The caller's, with the empty directory for MPS that slated was shown."""
    return dict(without_mps(os.environ), CUDA_MPS_PIPE_DIRECTORY=environment["CUDA_MPS_PIPE_DIRECTORY"])


def configurations(environment):
    """Native first, so that it warms nothing of ours."""
    native = {"native": native_environment(environment)} if ON_GPU else {}
    return dict(native, slated=environment, driver=with_driver_front(environment, ARGUMENTS.build))


def in_turns(words, environment):
    """Of every case (and size) the rows of each configuration."""
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(ARGUMENTS.rounds):
        for flavour, its in configurations(environment).items():
            for row in run(flavour, words, its):
                rows[row["case"], row.get("bytes", 0)][flavour].append(row)
    return rows


def middle(rows, field):
    return statistics.median(row[field] for row in rows)


def distributions(part, environment):
    flavours = list(configurations(environment))
    print("%-26s" % part + "".join("%22s" % (flavour + " median, p99 us") for flavour in flavours) +
          "".join("%9s/%s" % (flavour, flavours[0]) for flavour in flavours[1:]))
    words = [part] + (["--small"] if ARGUMENTS.small else [])
    for (name, size), by in in_turns(words, environment).items():
        medians = [middle(by[flavour], "median_us") for flavour in flavours]
        tails = [middle(by[flavour], "p99_us") for flavour in flavours]
        line = "%-26s" % (name + (" " + human(size) if size else ""))
        line += "".join("%12.2f %9.2f" % each for each in zip(medians, tails))
        line += "".join("%16.3f" % (median / medians[0]) for median in medians[1:])
        if size:
            line += "   %.2f GB/s" % middle(by["slated"], "gb_per_s")
        print(line, flush=True)


def starts():
    """Until the first kernel's result, as the shell sees it. Warm: the compile cache knows the program."""
    times = collections.defaultdict(list)

    def timed(label, flavour, environment):
        started = time.perf_counter()
        run(flavour, ["first"], environment)
        times[label].append(1000 * (time.perf_counter() - started))
        note({"case": "first_result", "configuration": label, "wall_ms": times[label][-1]})

    for _ in range(ARGUMENTS.rounds):
        with private_slated(ARGUMENTS.build, ARGUMENTS.device) as environment:
            timed("slated, cold cache", "slated", environment)
            for _ in range(3):
                timed("slated, warm cache", "slated", environment)
                timed("driver, warm cache", "driver", with_driver_front(environment, ARGUMENTS.build))
                if ON_GPU:
                    timed("native", "native", native_environment(environment))
    for label, values in times.items():
        ratio = " ratio %.4f" % (statistics.median(values) / statistics.median(times["native"])) if ON_GPU else ""
        print("first result, %-20s %8.1f ms%s" % (label, statistics.median(values), ratio), flush=True)


def bursts(flavour, count, environment):
    """Launches a second of `count` programs that begin together: of all from then until the last one's end, and of each
    until its own."""
    command = [program(flavour), "burst", str(ARGUMENTS.seconds)]
    # All wait for the end of one pipe, so that all are let go at once.
    wait, go = os.pipe()
    running = [
        subprocess.Popen(command, env=environment, stdin=wait, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    os.close(wait)
    ready = [process.stdout.readline() for process in running]
    os.close(go)
    rows = []
    for process, word in zip(running, ready):
        text = process.communicate(timeout=600)[0]
        if process.returncode != 0 or not word:
            sys.exit("a program of %d at once failed (%d)" % (count, process.returncode))
        rows.append(json.loads(text))
    start = min(row["start_us"] for row in rows)
    rates = [1e6 * row["launches"] / (row["end_us"] - start) for row in rows]
    whole = 1e6 * sum(row["launches"] for row in rows) / (max(row["end_us"] for row in rows) - start)
    note({"case": "burst", "configuration": flavour, "clients": count, "rate": whole, "rates": rates})
    return whole, rates


def clients(environment):
    daemon = int(environment["SLATE_BENCH_PID"])
    for flavour, its in configurations(environment).items():
        used, launches = processor_seconds(tree(daemon)), 0
        rates = []
        for _ in range(ARGUMENTS.rounds):
            rates.append(bursts(flavour, 1, its)[0])
            launches += rates[-1] * ARGUMENTS.seconds
        used = processor_seconds(tree(daemon)) - used
        alone = statistics.median(rates)
        note({"case": "burst_alone", "configuration": flavour, "rate": alone, "daemon_us": 1e6 * used / launches})
        whole, rates = bursts(flavour, ARGUMENTS.clients, its)
        print("%s: launches/s alone %.0f, of %d at once %.0f (%.2f of one), least %.0f, most %.0f; slated used %.2f us each" % (
            flavour, alone, len(rates), whole, whole / alone, min(rates), max(rates), 1e6 * used / launches), flush=True)


def stress(environment):
    """Random commands of eight threads whose results are checked."""
    for flavour, its in configurations(environment).items():
        started = time.perf_counter()
        command = [program(flavour, "path_stress"), "--commands", str(ARGUMENTS.commands)]
        reply = subprocess.run(command, env=its, capture_output=True, text=True, timeout=3600)
        if reply.returncode != 0:
            sys.exit("%s stress failed (%d): %s" % (flavour, reply.returncode, reply.stderr))
        row = json.loads(reply.stdout)
        seconds = time.perf_counter() - started
        note(dict(row, configuration=flavour, seconds=seconds))
        print("%s: %d mixed commands of %d threads right, %.0f a second" % (
            flavour, row["commands"], row["threads"], row["commands"] / seconds), flush=True)


def tree(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
        return [pid] + [each for child in children.read().split() for each in tree(int(child))]


def wakeups(pids):
    """Voluntary context switches so far, over all threads."""
    total = 0
    for pid in pids:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, thread)) as lines:
                total += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return total


def processor_seconds(pids):
    """User's and system's time so far."""
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as line:
            fields = line.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def shared_memory(pids):
    """Kilobytes of shared memory that the processes have touched, each page counted once over all of them."""
    total = 0.0
    for pid in pids:
        counts = False
        with open("/proc/%d/smaps" % pid) as lines:
            for line in lines:
                if "-" in line.split(" ", 1)[0]:
                    counts = "/memfd:" in line
                elif counts and line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


def idle(environment, daemon):
    count, settle = 8, 6
    command = [program("slated"), "idle", str(settle + ARGUMENTS.seconds + 5)]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    for process in running:
        process.stdout.readline()
    time.sleep(settle)
    programs = [process.pid for process in running]

    def used():
        pids = programs, tree(daemon)
        return [measure(each) for measure in (wakeups, processor_seconds) for each in pids]

    before = used()
    time.sleep(ARGUMENTS.seconds)
    after = used()
    kilobytes = shared_memory(programs + tree(daemon)) / count
    for process in running:
        process.kill()
        process.wait()
    rates = [(late - early) / ARGUMENTS.seconds for late, early in zip(after, before)]
    note({"case": "idle", "sessions": count, "program_wakeups": rates[0], "daemon_wakeups": rates[1],
          "program_processors": rates[2], "daemon_processors": rates[3], "shared_kilobytes": kilobytes})
    print("%d idle sessions: wake-ups a second: programs %.2f, slated %.2f; processors: programs %.3f, slated %.3f; "
          "shared memory of each %.0f KiB" % (count, *rates, kilobytes), flush=True)


def rows_of(name):
    """What one of the benchmarks that need no slated prints, noted."""
    command = [os.path.join(ARGUMENTS.build, "bin", name)] + (["--small"] if ARGUMENTS.small else [])
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        note(row)
        yield row


def main():
    parts = ARGUMENTS.parts.split(",")
    if "ring" in parts:
        for row in rows_of("ring_bench"):
            print("%-26s %12.0f commands/s %10.2f us a round trip" % (
                row["case"], row["per_second"], row["round_trip_us"]), flush=True)
    if "engine" in parts and not os.path.exists(os.path.join(ARGUMENTS.build, "bin", "launch_bench")):
        print("the engine's own part is left out: this build has no tests")
    elif "engine" in parts:
        for row in rows_of("launch_bench"):
            print("%-26s %9.3f us of the engine %9.3f us of the program, each" % (
                row["case"], row["engine_us"], row["program_us"]), flush=True)
    with private_slated(ARGUMENTS.build, ARGUMENTS.device) as environment:
        for part in ("calls", "bandwidth", "cold"):
            if part in parts:
                distributions(part, environment)
        if "clients" in parts:
            clients(environment)
        if "stress" in parts:
            stress(environment)
    if "idle" in parts:
        with private_slated(ARGUMENTS.build, ARGUMENTS.device) as environment:
            idle(environment, int(environment["SLATE_BENCH_PID"]))
    if "start" in parts:
        starts()


main()
