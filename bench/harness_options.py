"""The options of the benches that start their slated by tests/e2e/harness.py. That module reads the build folder from the
environment when it is imported, so the command line comes first."""

import argparse
import os
import sys


def make_parser(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    return parser


def parse(parser):
    """The arguments. The modules of tests/e2e can be imported from now on, and take their programs from that build."""
    arguments = parser.parse_args()
    os.environ["SLATE_BUILD"] = os.path.abspath(arguments.build)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
    return arguments
