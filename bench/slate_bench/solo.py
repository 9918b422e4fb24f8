"""solo: each program alone in each configuration: the whole process, start-up included, its loop and its kernel."""


HELP = "each program alone, against natively"
CONFIGURATIONS = ("native", "mps", "slate-adaptive")


def add_options(parser):
    parser.add_argument("--programs", nargs="*", metavar="NAME", help="these alone")


def chosen(session, arguments):
    """The names that are asked for and built, and own programs, which are always meant."""
    own = [name for name, program in session.programs.items() if not program.reports]
    return session.present(dict.fromkeys([*(arguments.programs or session.programs), *own]))


def prepare(session, arguments, configurations):
    """Takes what is asked for, `configurations` unless the arguments name others. The names that can be measured."""
    session.use(arguments.configurations or configurations)
    session.calibrate(chosen(session, arguments))
    return list(session.reps)


def measure_solo(session, configuration, name, number, barrier, cold=False):
    """Writes a row, unless it fails."""
    done = session.measure(
        configuration, [session.job(name)], split=[100] if configuration.has_splits else None, barrier=barrier
    )
    if done is None:
        return
    outcome = done[0]
    report = outcome.report
    session.writer.write(
        "solo",
        program=name,
        configuration=configuration.name,
        size=session.programs[name].size,
        reps=session.reps[name],
        round=number,
        cold=cold,
        loop_ms=outcome.loop_ms,
        application_ms=outcome.application_ms,
        kernel_ms=report.get("kernel_ms"),
        total_ms=report.get("total_ms"),
        hash=outcome.hash,
    )


def run(session, arguments):
    names = prepare(session, arguments, CONFIGURATIONS)
    session.warm_up(names)
    plan = [
        (number, configuration, name)
        for number in range(session.rounds)
        for configuration in session.with_reference
        for name in names
        if session.can_run(configuration, name)
    ]
    session.random.shuffle(plan)
    plan.sort(key=lambda step: step[0])  # round by round, each in an order of its own
    for number, configuration, name in session.steps(plan, "solo"):
        measure_solo(session, configuration, name, number, barrier=False)
