"""Rows of every kind, as a run on a GPU would write them, with made-up times: to test what reads rows."""

import itertools
import random

MACHINE = {"gpu": "Imaginary GPU", "driver": "580.0", "processor": "Imaginary CPU", "cpus": 16, "system": "6.1"}
CLOCKS = {"sm_mhz": 1980, "memory_mhz": 3201, "celsius": 40, "reasons": 0}
PROGRAMS = ["black_scholes", "gaussian", "quasi_random", "sgemm", "transpose", "fma_loop", "stream_read"]
SPLITS = [(25, 75), (50, 50), (75, 25)]


def row(kind, command="pairs", run="0123456789ab", **fields):
    return dict(
        kind=kind,
        run=run,
        time="2026-11-22T10:00:00.000+00:00",
        command=command,
        device="cuda",
        seed=1,
        commit="abc",
        machine=MACHINE,
        clocks=CLOCKS,
        **fields
    )


def solo(
    program,
    configuration,
    loop_ms=100.0,
    number=0,
    cold=False,
    command="pairs",
    run="0123456789ab",
    start_ms=300.0,
    digest="0" * 16,
):
    return row(
        "solo",
        command,
        run,
        program=program,
        configuration=configuration,
        size=1,
        reps=100,
        round=number,
        cold=cold,
        loop_ms=loop_ms,
        application_ms=loop_ms + start_ms,
        kernel_ms=0.0099 * loop_ms,
        total_ms=loop_ms + 0.7 * start_ms,
        hash=digest,
    )


def pair(programs, configuration, makespan_ms, number=0, split=None, run="0123456789ab", times_ms=None):
    sms = [round(132 * share / 100) for share in split] if split and configuration == "green" else None
    return row(
        "pair",
        run=run,
        programs=list(programs),
        configuration=configuration,
        split=split and list(split),
        sms=sms,
        reps=[100, 100],
        round=number,
        makespan_ms=makespan_ms,
        times_ms=times_ms or [0.9 * makespan_ms, makespan_ms],
        hashes=["0" * 16, None],
    )


def calibration(program, run="0123456789ab", command="pairs"):
    return row("calibration", command, run, program=program, configuration="native", size=1, reps=100, rep_ms=1.0)


def every_kind(seed=1):
    """A whole run of every subcommand."""
    source = random.Random(seed)
    rows = [calibration(name) for name in PROGRAMS]
    for number in range(3):
        rows += [solo(name, "native", 100 + source.random(), number) for name in PROGRAMS]
        for programs in itertools.combinations_with_replacement(PROGRAMS, 2):
            rows += pair_rows(source, programs, number)
    rows += alone_rows(source) + sweep_rows(source) + mix_rows(source)
    rows += [
        row(
            "profile",
            configuration="slate-adaptive",
            program=name,
            kernel="_Z%s" % name,
            ms=1.0,
            flops=1e9 * source.random(),
            bytes=1e9 * source.random(),
            instructions=1e8,
            **{"class": "M_M"}
        )
        for name in PROGRAMS
    ]
    rows += [
        row(
            "fairness",
            "fairness",
            program="sgemm",
            configuration="slate-adaptive",
            what=what,
            count=count,
            round=0,
            times_ms=[100.0 + i for i in range(count)],
            hashes=["0" * 16] * count,
            ratio=1 + (count - 1) / 100,
        )
        for what, count in (("equal", 8), ("weights", 2))
    ]
    rows += [
        row(
            "memory",
            "memory",
            what=what,
            order=order,
            round=0,
            tenants=tenants,
            bytes=62 << 30,
            device_bytes=24 << 30,
            swap_bytes=64 << 30,
            gap_ms=0,
            makespan_ms=1000.0 * tenants,
            longest_round_ms=400.0,
            failed=0,
            moved_out=40 << 30,
            moved_in=30 << 30,
            evictions=12,
            to_host_per_s=rate,
            to_device_per_s=rate,
        )
        for what, order, tenants, rate in (
            ("steady", "one by one", 8, None),
            ("steady", "at once", 8, None),
            ("exchange", "at once", 2, 2e10),
        )
    ]
    rows.append(
        row(
            "arrangements",
            "arrangements",
            programs=["sgemm", "fma_loop"],
            own=0.8,
            own_arrangement="alone",
            best="split 64",
            reached=0.95,
            search_ms=30.0,
            candidates=9,
            ratios={"alone": 1.0, "split 64": 0.76},
        )
    )
    return rows + [
        row("skipped", configuration="slate-table", reason="an example"),
        row("failure", configuration="mps", programs=["sgemm", "fma_loop"], split=None, message="ended with 2: <no>"),
        row("left_out", what="3 of 900 runs", reason="9 minutes are over"),
    ]


def pair_rows(source, programs, number):
    rows = [
        pair(programs, "native", 200 + 4 * source.random(), number),
        pair(programs, "mps", 185 + 10 * source.random(), number),
        pair(programs, "slate-adaptive", 200 / (0.97 + abs(source.gauss(0.2, 0.4))), number),
        pair(programs, "slate-fifo", 195 + 10 * source.random(), number),
    ]
    for configuration in ("mps-split", "green"):
        rows += [pair(programs, configuration, 150 + 60 * source.random(), number, split) for split in SPLITS]
    return rows


def alone_rows(source):
    rows = [calibration(name, "aaaaaaaaaaaa", "overhead") for name in PROGRAMS]
    for name, number in itertools.product(PROGRAMS, range(2)):
        for configuration, cold, start in (
            ("native", False, 300),
            ("slate-adaptive", True, 190),
            ("slate-adaptive", False, 150),
        ):
            rows.append(
                solo(name, configuration, 100 + 3 * source.random(), number, cold, "overhead", "aaaaaaaaaaaa", start)
            )
    return rows


def sweep_rows(source):
    rows = []
    for name in PROGRAMS:
        for value in (1, 2, 4, 8, 16, 32):
            rows.append(
                row(
                    "sweep",
                    "sweep",
                    what="task_size",
                    kernel=name,
                    value=value,
                    round=0,
                    native_ms=1.0,
                    kernel_ms=1 + source.random() / value,
                )
            )
        for value in range(12, 133, 12):
            rows.append(
                row(
                    "sweep",
                    "sweep",
                    what="sms",
                    kernel=name,
                    value=value,
                    round=0,
                    native_ms=1.0,
                    kernel_ms=max(1, 132 / value * source.random()),
                )
            )
        for value in range(1, 9):
            rows.append(
                row(
                    "sweep",
                    "sweep",
                    what="workers_per_sm",
                    kernel=name,
                    value=value,
                    round=0,
                    native_ms=1.0,
                    kernel_ms=max(1, 6 / value * source.random()),
                )
            )
    return rows


def mix_rows(source):
    rows = []
    for number, (name, length) in itertools.product(
        range(2), (("one-at-a-time", 900), ("native", 700), ("mps", 650), ("slate-adaptive", 480))
    ):
        jobs = [
            {
                "program": PROGRAMS[i % 7],
                "reps": 10,
                "hash": "0" * 16,
                "arrival_ms": 100.0 * i,
                "started_ms": 100.0 * i,
                "ended_ms": 100.0 * i + length * (1 + source.random()),
            }
            for i in range(32)
        ]
        makespan = max(job["ended_ms"] for job in jobs)
        rows.append(
            row(
                "mix",
                "mix",
                configuration=name,
                round=number,
                jobs=jobs,
                makespan_ms=makespan,
                throughput_per_s=32e3 / makespan,
                mean_turnaround_ms=sum(job["ended_ms"] - job["arrival_ms"] for job in jobs) / 32,
            )
        )
    return rows
