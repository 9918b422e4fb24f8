"""memory: programs that together have more memory than slate's part of the device (kernels/memory/tenant.cu).

steady    --tenants programs whose memory is --load times the part, computing without a break
gaps      the same with pauses on the host, as in FlexGPU's measurements (--gap times a round's kernels)
three     three programs of 60 % of the part each
exchange  two programs that each fill the part and change places often: bytes moved a second
copies    natively: pinned copies both ways at once, the bound of the exchange
no-swap   the tenants at once without host memory for them: how many get no memory

The first three run at once, and one after the other under the same slated. Every word of every program is checked.
"""

import argparse
import json
import os
import re
import subprocess
import time

from .configurations import SlateConfiguration, plain_environment
from .daemons import DaemonError
from .options import positive
from .runner import Command, Process, RunFailed, reports_in

HELP = "programs with more memory than the device"
CASES = ("steady", "gaps", "three", "exchange", "copies", "no-swap")
ORDERS = {"steady": ("one by one", "at once"), "gaps": ("one by one", "at once"), "three": ("one by one", "at once")}
LIMIT_S = 180  # of one measurement
BUFFERS = 4  # of each program
SAMPLE_S = 0.1
NO_MEMORY = "cudaErrorMemoryAllocation"


def size(text):
    """Bytes, from a number with K, M, G or T."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text)
    if not found:
        raise argparse.ArgumentTypeError("%r: a number with K, M, G or T is wanted" % text)
    return int(float(found.group(1)) * 1024 ** " KMGT".index(found.group(2) or " "))


def add_options(parser):
    parser.set_defaults(rounds=1, programs=None)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--part", type=size, help="slate's part of the device (24G; on sim 48M)")
    parser.add_argument("--swap", type=size, help="host memory for the rest (72G; on sim 512M)")
    parser.add_argument("--tenants", type=positive(int, least=1), default=8, help="(%(default)s)")
    parser.add_argument("--load", type=positive(float), default=2.6, help="their memory over the part (%(default)s)")
    parser.add_argument("--work-rounds", type=positive(int), help="of each program (20; on sim 3)")
    parser.add_argument("--kernel-ms", type=positive(float, or_zero=True), help="of a tenant's round alone (50; on sim 0: as it comes)")
    parser.add_argument("--gap", type=positive(float), default=4, help="a pause over a round's kernels (%(default)s)")
    parser.add_argument("--exchange-seconds", type=positive(float), help="(10; on sim 2)")
    parser.add_argument("--exchange-percent", type=positive(float), default=50, help="swap_overhead_percent there (%(default)s)")


def fill_in(arguments, on_gpu):
    """The defaults that depend on the device."""
    for name, gpu, sim in (
        ("part", 24 << 30, 48 << 20),
        ("swap", 72 << 30, 512 << 20),
        ("work_rounds", 20, 3),
        ("kernel_ms", 50.0, 0.0),
        ("exchange_seconds", 10.0, 2.0),
    ):
        if getattr(arguments, name) is None:
            setattr(arguments, name, gpu if on_gpu else sim)


class SwappingSlate(SlateConfiguration):
    """A slated with a part of the device, and host memory for what does not fit."""

    def __init__(self, session, name, part, swap, more=""):
        super().__init__("slate-adaptive", session)
        self.name = name
        # Keys without a table come first.
        self.ready = min(swap, 2 * part)
        self.settings = 'device_memory = "%d"\nswap = "%d"\nswap_ready = "%d"\n%s\n%s' % (part, swap, self.ready, more, self.settings)

    def get_ready(self, run):
        """Host memory comes slowly at first. What is measured begins when it is there; `run` runs any program."""
        deadline = time.monotonic() + LIMIT_S
        if self.ready and self.swapped()["host_bytes"] < self.ready:
            run()
            while self.swapped()["host_bytes"] < self.ready and time.monotonic() < deadline:
                time.sleep(0.1)

    def swapped(self):
        """What the status says of it. DaemonError where it says nothing."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:  # a busy engine leaves it out of a status
            done = self.slatectl("status", "--json")
            found = json.loads(done.stdout).get("swap") if done.returncode == 0 else None
            if found:
                found["moved_out"] -= found["clean_out"]  # that left without a copy
                return found
            time.sleep(0.05)
        raise DaemonError("slated says nothing of memory on the host")


class Bench:
    def __init__(self, session, arguments):
        self.session = session
        self.arguments = arguments
        part, swap = arguments.part, arguments.swap
        often = "swap_overhead_percent = %g" % arguments.exchange_percent
        self.slateds = {
            "swap": SwappingSlate(session, "slate-swap", part, swap),
            "exchange": SwappingSlate(session, "slate-exchange", part, swap, often),
            "no-swap": SwappingSlate(session, "slate-no-swap", part, 0),
        }
        session.configurations = list(self.slateds.values())
        self.spin, self.round_ms = 0, 0.0

    def slated_of(self, case):
        """The one that a case needs; the others give their memory back."""
        wanted = self.slateds.get(case, self.slateds["swap"])
        for each in self.slateds.values():
            if each is not wanted:
                each.stop()
        wanted.start()
        if wanted is not self.slateds["no-swap"]:
            wanted.get_ready(lambda: self.run(wanted, [self.words(2**20 / self.arguments.part, 0, "--rounds", 1)], "one by one"))
        return wanted

    def words(self, share, number, *more):
        """A program with that share of the part."""
        tenant = os.path.join(self.session.build, "bin", "shared", "tenant")
        given = {"--mib": "%.3f" % (share * self.arguments.part / 2**20), "--buffers": BUFFERS, "--seed": number + 1}
        return [tenant, *(str(word) for pair in given.items() for word in pair), *map(str, more)]

    def tenants(self, case):
        """The commands of a case, and the bytes of all of them."""
        rounds = ["--rounds", self.arguments.work_rounds, "--spin", self.spin]
        count, share = self.arguments.tenants, self.arguments.load / self.arguments.tenants
        if case == "three":
            count, share = 3, 0.6
        if case == "exchange":
            count, share, rounds = 2, 0.95, ["--rounds", 10**6, "--seconds", self.arguments.exchange_seconds]
        if case == "gaps":
            rounds += ["--gap_ms", self.gap_ms()]
        commands = [self.words(share, number, *rounds) for number in range(count)]
        return commands, int(count * share * self.arguments.part)

    def gap_ms(self):
        return round(self.arguments.gap * self.round_ms, 3)

    def calibrate(self):
        """How long a tenant's round takes alone, and which arithmetic makes it so long. Compiles the code, too."""
        share = self.arguments.load / self.arguments.tenants
        words = self.words(share, 0, "--rounds", 3, "--kernel_ms", self.arguments.kernel_ms)
        done = self.run(self.slated_of("swap"), [words], "one by one")
        report = done["reports"][0]
        self.spin, self.round_ms = report["spin"], 1e3 * report["kernel_seconds"] / report["rounds"]
        self.session.say("a round takes %.1f ms alone" % self.round_ms)

    def run(self, slated, commands, order, watch=None):
        """Runs them. Programs that get no memory count; RunFailed if one fails in another way."""
        environment = slated.environment(0, None)
        processes = [Process(Command(slated.prefix() + words, environment, [i], False)) for i, words in enumerate(commands)]
        deadline = time.monotonic() + LIMIT_S
        before = slated.swapped() if slated is not self.slateds["no-swap"] else {}
        try:
            for process in processes:
                process.start()
                if order == "one by one":
                    process.thread.join(max(0, deadline - time.monotonic()))
            while watch and any(process.running() for process in processes) and time.monotonic() < deadline:
                watch()
                time.sleep(SAMPLE_S)
            for process in processes:
                process.thread.join(max(0, deadline - time.monotonic()))
                if process.thread.is_alive():
                    raise RunFailed("not done in time: %s" % " ".join(process.command.words))
        finally:
            for process in processes:
                process.kill()
        return self.result(slated, processes, before)

    @staticmethod
    def result(slated, processes, before):
        refused = [each for each in processes if each.popen.returncode == 2 and NO_MEMORY in each.errors]
        for process in processes:
            if process not in refused:
                process.check()
        after = slated.swapped() if before else {}
        return {
            "makespan_ms": max(each.ended_ms for each in processes) - min(each.started_ms for each in processes),
            "failed": len(refused),
            "reports": [reports_in(each.output)[-1] for each in processes if each not in refused],
            **{key: after[key] - before[key] if before else 0 for key in ("moved_out", "moved_in", "evictions")},
        }

    def measure(self, case, order, number):
        slated = self.slated_of(case)
        commands, size_of_all = self.tenants(case)
        samples = []

        def watch():
            samples.append(slated.swapped())

        done = self.run(slated, commands, order, watch if case == "exchange" else None)
        rates = rates_of(samples)
        reports = done.pop("reports")
        self.write(
            case,
            order=order,
            round=number,
            tenants=len(commands),
            bytes=size_of_all,
            gap_ms=self.gap_ms() if case == "gaps" else 0,
            longest_round_ms=max((report["longest_round_ms"] for report in reports), default=None),
            to_host_per_s=rates and rates[0],
            to_device_per_s=rates and rates[1],
            **done
        )

    def copies(self, number):
        """Natively, and without anything of slate's."""
        for each in self.slateds.values():
            each.stop()
        program = os.path.join(self.session.build, "bin", "shared", "copy_rate")
        environment = plain_environment(self.session.machine.index or 0)
        done = subprocess.run([program, "3"], env=environment, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode:
            raise RunFailed("copy_rate: " + done.stderr.strip())
        found = json.loads(done.stdout)
        self.write("copies", order=None, round=number, to_host_per_s=found["to_host"], to_device_per_s=found["to_device"])

    def write(self, case, **fields):
        names = "tenants bytes gap_ms longest_round_ms makespan_ms failed moved_out moved_in evictions"
        given = dict.fromkeys(names.split())
        self.session.writer.write(
            "memory", what=case, device_bytes=self.arguments.part, swap_bytes=self.arguments.swap, **{**given, **fields}
        )


def rates_of(samples):
    """Bytes a second to the host and to the device while anything moves; None where nothing moved."""
    moving = [each for each in samples if each["moved_out"] > 0]
    if not moving:
        return None
    first, last = moving[0], moving[-1]
    found = []
    for moved, ms in ("moved_out", "out_ms"), ("copied_in", "in_ms"):
        if last[ms] == first[ms]:
            return None
        found.append(1e3 * (last[moved] - first[moved]) / (last[ms] - first[ms]))
    return found


def run(session, arguments):
    fill_in(arguments, session.machine.on_gpu)
    cases = [case for case in CASES if case in arguments.cases]
    if "copies" in cases and not session.machine.on_gpu:
        cases.remove("copies")
        session.writer.write("skipped", configuration="native", reason="sim has slate's configurations only")
    bench = Bench(session, arguments)
    bench.calibrate()
    plan = [
        (number, case, order)
        for case in cases
        for number in range(session.rounds)
        for order in ORDERS.get(case, ("at once",))
    ]
    for number, case, order in session.steps(plan, "memory"):
        try:
            if case == "copies":
                bench.copies(number)
            else:
                bench.measure(case, order, number)
        except (RunFailed, DaemonError) as error:
            slated = bench.slateds.get(case, bench.slateds["swap"])
            session.fail(slated, ["tenant"], None, error, label="%s, %s" % (case, order))
