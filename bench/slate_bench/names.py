"""What the report calls configurations and programs, their order, and their colours."""

COLOURS = {
    "native": "#8c8c8c",
    "one-at-a-time": "#c9c9c9",
    "mps": "#4c72b0",
    "mps-split": "#9ab6dc",
    "green": "#55a868",
    "slate-adaptive": "#c44e52",
    "slate-table": "#dd8452",
    "slate-fifo": "#e8b9a0",
    "slate-timeslice": "#937860",
}
LABELS = {
    "native": "native (time slicing)",
    "mps": "MPS",
    "mps-split": "MPS, best percentages",
    "green": "green contexts, best split",
    "one-at-a-time": "one at a time",
}
SHORT = {"black_scholes": "BS", "gaussian": "GS", "sgemm": "MM", "quasi_random": "RG", "transpose": "TR"}


def name_of(configuration):
    return LABELS.get(configuration, configuration)


def short(programs):
    return "-".join(SHORT.get(name, name) for name in programs)


def ordered(configurations):
    return [name for name in COLOURS if name in configurations]


def human(size):
    """Bytes, to whole units: 4, 64K, 16M."""
    for unit in ("", "K", "M"):
        if size < 1024:
            return "%d%s" % (size, unit)
        size //= 1024
    return "%dG" % size
