"""What is computed from times: medians with their spread, and the field's measures of sharing."""

import statistics

median = statistics.median


def spread(values):
    """Half the distance of the quartiles over the median, 0 for fewer than two values: how far apart runs are."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / median(values)


mean = statistics.mean


def geometric_mean(values):
    return statistics.geometric_mean(values)


def slowdowns(shared, alone):
    """Of each program: its time in company over its time alone, natively."""
    return [together / single for together, single in zip(shared, alone, strict=True)]


def antt(shared, alone):
    """Average normalised turnaround time: the mean slowdown. 1 is undisturbed; lower is better."""
    return statistics.mean(slowdowns(shared, alone))


def stp(shared, alone):
    """System throughput: programs' worth of progress at a time. 1 is one after the other; higher is better."""
    return sum(1 / slowdown for slowdown in slowdowns(shared, alone))


def fairness(shared, alone):
    """The least slowdown over the largest: 1 is equal suffering."""
    each = slowdowns(shared, alone)
    return min(each) / max(each)
