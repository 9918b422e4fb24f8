"""The command line: slate-bench SUBCOMMAND. Exit status: 0; 1 something failed while it was measured (rows say what),
or a document is not what its files say; 2 a command line that makes no sense; 3 --max-minutes cut it short;
130 interrupted."""

import argparse
import signal
import sys

from . import arrangements, fairness, memory, mix, overhead, pairs, report, rows, solo, summary, sweep
from .configurations import NAMES
from .options import positive
from .profile import write_profiles
from .programs import UsageError, default_build
from .session import OutOfTime, make_session

MEASURING = {
    "solo": solo,
    "pairs": pairs,
    "mix": mix,
    "overhead": overhead,
    "sweep": sweep,
    "arrangements": arrangements,
    "fairness": fairness,
    "memory": memory,
}
PASSIVE = {"report": report}


def parser():
    made = argparse.ArgumentParser(
        prog="slate-bench",
        description="Programs that share a GPU: slate against its rivals.",
        epilog="docs/benchmarking.md says what is measured, and how.",
    )
    commands = made.add_subparsers(dest="command", required=True)
    for name, module in MEASURING.items():
        command = commands.add_parser(
            name, help=module.HELP, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        add_common(command)
        module.add_options(command)
    for name, module in PASSIVE.items():
        command = commands.add_parser(
            name, help=module.HELP, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_options(command)
    return made


def add_common(command):
    command.add_argument("--build", default=default_build(), help="build folder (%(default)s)")
    command.add_argument(
        "--device", default="auto", help="auto: the first GPU, else sim; cuda, cuda:N, sim or sim:KEY=VALUE,..."
    )
    command.add_argument("--rows", default="slate-bench.jsonl", help="file that rows are appended to (%(default)s)")
    command.add_argument("--configurations", nargs="*", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    command.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="a program of your own; {reps} in it makes it repeat so often",
    )
    command.add_argument("--size", action="append", default=[], metavar="NAME=N", help="instead of the list's")
    command.add_argument("--seconds", type=positive(float), help="native time alone of each program (0.5; on sim 0.02)")
    command.add_argument(
        "--rounds", type=positive(int), default=3, help="times that everything is measured (%(default)s)"
    )
    command.add_argument("--seed", type=int, default=1, help="of the order (%(default)s)")
    command.add_argument(
        "--max-minutes", type=positive(float, or_zero=True), default=0, help="stop cleanly after so long; 0: when done"
    )
    command.add_argument("--settings", default="", help="further TOML for slated")
    command.add_argument(
        "--traces", metavar="FOLDER", help="where to keep the trace of every run under slate of more than one program"
    )


def interrupt(*_):
    raise KeyboardInterrupt


def main(words=None):
    arguments = parser().parse_args(words)
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, interrupt)
    try:
        return PASSIVE[arguments.command].run(arguments) if arguments.command in PASSIVE else measure(arguments)
    except UsageError as error:
        print("slate-bench: %s" % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("slate-bench: interrupted; what was measured is in %s" % arguments.rows, file=sys.stderr)
        return 130


def measure(arguments):
    session = make_session(arguments, arguments.command)
    status = 0
    try:
        try:
            MEASURING[arguments.command].run(session, arguments)
        except OutOfTime as limit:
            session.say("stopped: %s" % limit)
            session.writer.write("left_out", what=session.left, reason=str(limit))
            status = 3
        write_profiles(session)
    finally:
        session.stop()
        session.writer.close()
    found = rows.read([arguments.rows])
    summary.write_sqlite(found, arguments.rows + ".sqlite")
    for line in summary.lines([row for row in found if row["run"] == session.writer.run]):
        print(line)
    session.say("rows are in %s, a summary in %s.sqlite" % (arguments.rows, arguments.rows))
    return status or (1 if session.failures else 0)
