"""A progress bar for long runs: tqdm's where it is installed and somebody watches, else a line now and then."""

import sys
import time

LINE_EVERY_S = 20


class Lines:
    def __init__(self, total, label):
        self.total, self.label, self.done, self.said = total, label, 0, time.monotonic()

    def update(self, count=1):
        self.done += count
        if time.monotonic() - self.said > LINE_EVERY_S:
            self.said = time.monotonic()
            print("%s: %d of %d" % (self.label, self.done, self.total), file=sys.stderr, flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def progress(total, label):
    """A context manager with update()."""
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm

            return tqdm(total=total, desc=label, unit="run", file=sys.stderr)
        except ImportError:
            pass
    return Lines(total, label)
