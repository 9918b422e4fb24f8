"""What subcommands need to read their options."""


def positive(kind, least=0, or_zero=False):
    """For argparse: a number of that kind above `least`; with `or_zero` 0 too."""

    def convert(text):
        value = kind(text)
        if not (value > least or or_zero and value == 0):
            raise ValueError(text)
        return value

    convert.__name__ = "positive number" if not least else "number above %d" % least
    return convert
