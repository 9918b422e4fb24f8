"""Programs that nobody here wrote, eight at a time under one slated, some of which fault. Each innocent run has to print what it
prints natively, with the same exit status. Each faulty run has to end as natively, and it or slate has to name an error.
Prints one table, and what went wrong. Exit status 1: something did.

The list is a JSON array of `name`, `command`, `faulty`, and optionally `drop` and `cwd`. A word of the command that names a
file beside the list means that file. `drop` is a regular expression of lines that differ each time, such as times. `cwd` is
beside the list, too. Without it a run has an empty folder of its own, and the files that it leaves there count as printed.

- Natively each program runs twice. One whose two outputs differ is named and left out. On sim, which has no native runs,
  a lone slated runs them instead.
- `--expected FILE` keeps what they print. The next time it is read, and programs that it lacks are left out.
- The faulty programs are another user's, which needs root. While they are alone they have no fence, and may lose an engine.
- `--cost N` measures the fence instead: each innocent program N times by each of two slated, without the fence and behind it,
  in turn. `kernels` is the ratio of the kernels' times by the device's clock: for each kernel, grid and form that all runs have
  measured, the mean time of a launch times the launches, and of the runs the median. `measured` is the part of the launches that
  these are. A kernel's first launches in a process do not count, as its code is loaded with them, unless nothing else was
  measured. `process` is the ratio of whole runs. 1.00 is no cost. An engine tries other forms in some of its first launches: hence
  the form. With `--control` both are without the fence: so far from 1.00 is what two slated differ by in any case.

    SLATE_TEST_DEVICE=cuda python3 bench/beside_faults.py --build build/release --list programs/list.json
    SLATE_TEST_DEVICE=cuda python3 bench/beside_faults.py --build build/release --list programs/list.json --cost 3
"""

import collections
import concurrent.futures
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from harness_options import make_parser, parse

parser = make_parser(__doc__)
parser.add_argument("--list", required=True, help="the programs")
parser.add_argument("--only", default="", help="regular expression of the names that count")
parser.add_argument("--rounds", type=int, default=10, help="runs of each program")
parser.add_argument("--faults", type=int, default=2, help="runs of each faulty program in each round")
parser.add_argument("--at_once", type=int, default=8)
parser.add_argument("--seed", type=int, default=1, help="of the order")
parser.add_argument("--limit", type=float, default=60, help="seconds of one run")
parser.add_argument("--cost", type=int, metavar="ROUNDS", help="measure the fence instead")
parser.add_argument("--control", action="store_true", help="of --cost: without the fence in both")
parser.add_argument("--expected", help="file for what the programs print natively")
parser.add_argument("--slated", default="", help="further options of slated")
parser.add_argument("--json", help="file for the rows")
arguments = parse(parser)

from harness import ON_GPU, SLOW, Daemon, binary, sha256  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(arguments.list))
USERS = {False: 65532, True: 65531}  # by whether the program is faulty
ERROR = re.compile(r"illegal|misaligned|assert|trap|launch failure|no memory of its program", re.IGNORECASE)
TRACE_EVENTS = "1000000"
Run = collections.namedtuple("Run", "pid status lines err seconds")


def read_json(path):
    with open(path) as file:
        return json.load(file)


def keep(rows):
    """The rows so far, for those whose time is up before the end."""
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def run(program, daemon=None, user=None):
    """One run, natively or under a slated, as root or as a user."""
    words = [os.path.join(FOLDER, word) if os.path.exists(os.path.join(FOLDER, word)) else word for word in program["command"]]
    keywords = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o777)
        place = os.path.join(FOLDER, program["cwd"]) if program.get("cwd") else scratch
        if daemon:
            words = [binary("slatectl"), "run", "--", *words]
        began = time.monotonic()
        process = subprocess.Popen(words, cwd=place, env=daemon.environment if daemon else None, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **keywords)
        try:
            out, err = process.communicate(timeout=arguments.limit * SLOW)
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            status = "hangs"
        seconds = time.monotonic() - began
        left = ["file %s %s" % (name, sha256(os.path.join(scratch, name))) for name in sorted(os.listdir(scratch))]
    drop = program.get("drop")
    lines = [line for line in out.splitlines() + left if not (drop and re.search(drop, line))]
    return Run(process.pid, status, lines, err, seconds)


def each_at_once(calls):
    """The results of the calls, in their order, so many at a time."""
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        return list(pool.map(lambda call: call(), calls))


def make_daemon(*extra):
    # Nobody is barred for his faults.
    daemon = Daemon(extra=[*extra, "--bar-after", "0", *arguments.slated.split()])
    os.chmod(daemon.root, 0o755)
    return daemon


def difference(run_lines, expected_lines):
    """The first line that differs, or None."""
    for ours, theirs in itertools.zip_longest(run_lines, expected_lines):
        if ours != theirs:
            return "'%s' in place of '%s'" % (ours, theirs)
    return None


def expected_of(programs):
    """{name: (exit status, lines)} of the programs that do the same twice."""
    if arguments.expected and os.path.exists(arguments.expected):
        return read_json(arguments.expected)
    daemon = None if ON_GPU else make_daemon()
    programs = sorted(programs, key=lambda each: each["faulty"])  # without a fence faults disturb the others
    runs = each_at_once([lambda each=each: run(each, daemon) for each in programs for _ in range(2)])
    if daemon:
        daemon.stop()
    found = {}
    for program, first, second in zip(programs, runs[::2], runs[1::2]):
        unlike = difference(second.lines, first.lines) if not program["faulty"] else None
        failed = not program["faulty"] and first.status != 0
        if unlike or failed or first.status != second.status:
            print("left out: %s: exit status %s and %s, %s %s" % (program["name"], first.status, second.status, unlike or "",
                                                                 first.err.strip()[-200:] if failed else ""))
            continue
        found[program["name"]] = (first.status, first.lines)
        errors = ERROR.findall("\n".join(first.lines) + first.err)
        print("%-28s %.2f s, exit status %s, %d lines%s" % (program["name"], second.seconds, first.status, len(first.lines),
                                                          ", faulty: says %s" % sorted(set(errors)) if program["faulty"] else ""))
    if arguments.expected:
        with open(arguments.expected, "w") as file:
            json.dump(found, file)
    return found


def wrong(program, done, expected):
    """Why a run is not right, or None."""
    status, lines = expected
    if done.status != status:
        return "exit status %s in place of %s: %s" % (done.status, status, done.err.strip()[-300:])
    if program["faulty"]:
        return None if ERROR.search("\n".join(done.lines) + done.err) else "no error: %s" % done.err.strip()[-300:]
    other = difference(done.lines, lines)
    # A program that checks no error goes on with wrong data; slate has said so.
    told = [line for line in done.err.splitlines() if line.startswith("slate: ")]
    return other and "%s; %s" % (other[:80], told[0][:300] if told else "SLATE SAID NOTHING")


def beside(programs):
    expected = expected_of(programs)
    programs = [each for each in programs if each["name"] in expected]
    order, source = [], random.Random(arguments.seed)
    for _ in range(arguments.rounds):
        turn = [each for each in programs for _ in range(arguments.faults if each["faulty"] else 1)]
        source.shuffle(turn)
        order += turn
    daemon = make_daemon("--spare-engine", "always")
    user = USERS if os.geteuid() == 0 else {False: None, True: None}
    began = time.monotonic()
    runs = each_at_once([lambda each=each: run(each, daemon, user[each["faulty"]]) for each in order])
    took = time.monotonic() - began
    daemon.wait_until_idle()
    state = daemon.status()
    rows = [{"name": each["name"], "faulty": each["faulty"], "seconds": done.seconds,
             "wrong": wrong(each, done, expected[each["name"]])} for each, done in zip(order, runs)]
    daemon.stop()
    print("\n| programs | number | runs | right | hit |\n|---|---|---|---|---|")
    for faulty, kind in ((False, "innocent"), (True, "faulty")):
        mine = [row for row in rows if row["faulty"] == faulty]
        hit = collections.Counter(row["name"] for row in mine if row["wrong"])
        print("| %s | %d | %d | %d | %s |" % (kind, len({row["name"] for row in mine}), len(mine), len(mine) - sum(hit.values()),
                                             ", ".join("%s %d" % pair for pair in hit.items()) or "none"))
    print("%d engines lost, %.0f s, fence: %s" % (state["engine"]["restarts"], took, state.get("fence")))
    for row in rows:
        if row["wrong"]:
            print("%s: %s" % (row["name"], row["wrong"]))
    return rows, not any(row["wrong"] for row in rows)


def kernel_times(daemon, pid, seconds):
    """{(kernel, blocks, form): [launches, launches that were measured, milliseconds of those]} of the process, as the trace has them."""
    reply = subprocess.run([binary("slatectl"), "trace", "--out", "-", "--last", "%.1f" % (seconds + 1)], env=daemon.environment,
                           capture_output=True, text=True)
    if reply.returncode != 0:
        sys.exit("slatectl trace: " + reply.stderr)
    events = json.loads(reply.stdout)["traceEvents"]
    mine = {each["pid"] for each in events if each.get("name") == "process_name" and "pid %d)" % pid in each["args"]["name"]}
    found = collections.defaultdict(lambda: [0, 0, 0.0])
    firsts = {}
    kernels = [each for each in events if each.get("cat") == "kernel" and each["pid"] in mine]
    for event in sorted(kernels, key=lambda each: each["ts"]):
        told = event["args"]
        times = found[event["name"], told["blocks"], told["form"]]
        times[0] += told["launches"]
        if told["device_ms"] > 0:
            times[1] += told["launches"]
            times[2] += told["device_ms"]
        firsts.setdefault(event["name"], (times, told))
    for times, told in firsts.values():
        if told["device_ms"] > 0 and times[1] > told["launches"]:
            times[1] -= told["launches"]
            times[2] -= told["device_ms"]
    return found


def kernels_ratio(without, behind):
    """Milliseconds of all launches of a run in both ways, medians, and the part of the launches that these are. Both: runs."""
    first = without[0]
    measured = [key for key in first if all(run[key][1] for run in without + behind)]

    def of(run):
        return sum(first[key][0] * run[key][2] / run[key][1] for key in measured)

    ms = [statistics.median(of(run) for run in runs) for runs in (without, behind)]
    return ms, sum(first[key][0] for key in measured) / max(1, sum(times[0] for times in first.values()))


def cost(programs):
    fences = {"never": "never", "always": "never" if arguments.control else "always"}
    ways = {way: make_daemon("--fence", fence, "--trace-events", TRACE_EVENTS) for way, fence in fences.items()}
    rows = []
    print("%-28s %10s %10s %8s %8s %8s" % ("program", "ms", "fenced ms", "kernels", "process", "measured"))
    for program in (each for each in programs if not each["faulty"]):
        times, seconds, lines, failure = {way: [] for way in ways}, {way: [] for way in ways}, {}, None
        for turn in range(arguments.cost + 2):  # the first ones make code and forms
            for way, daemon in ways.items():
                done = run(program, daemon)
                if done.status != 0:
                    failure = "exit status %s: %s" % (done.status, done.err[-300:])
                lines.setdefault(way, done.lines)
                if turn >= 2:
                    seconds[way].append(done.seconds)
                    times[way].append(kernel_times(daemon, done.pid, done.seconds))
        (without, behind), part = kernels_ratio(times["never"], times["always"])
        row = {"name": program["name"], "ms": without, "fenced_ms": behind,
               "kernels": behind / without if without else None, "measured": part,
               "process": statistics.median(seconds["always"]) / statistics.median(seconds["never"]),
               "wrong": failure or difference(lines["always"], lines["never"])}
        rows.append(row)
        keep(rows)
        print("%-28s %10.3f %10.3f %8.3f %8.3f %8.2f %s" % (row["name"], row["ms"], row["fenced_ms"], row["kernels"] or 0, row["process"],
                                                           part, row["wrong"] or ""), flush=True)
    for key in ("kernels", "process"):
        ratios = [row[key] for row in rows if row[key]]
        if ratios:
            print("%s: mean %.3f, median %.3f, worst %.3f, of %d programs" % (key, statistics.mean(ratios), statistics.median(ratios),
                                                                           max(ratios), len(ratios)))
    if not arguments.control:
        print("fence: %s" % ways["always"].fence())
    for daemon in ways.values():
        daemon.stop()
    return rows, not any(row["wrong"] for row in rows)


def main():
    programs = [each for each in read_json(arguments.list) if re.search(arguments.only, each["name"])]
    if arguments.expected and os.path.exists(arguments.expected):
        programs = [each for each in programs if each["name"] in read_json(arguments.expected)]
    rows, right = cost(programs) if arguments.cost else beside(programs)
    keep(rows)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
