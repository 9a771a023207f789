"""The verdict on growth: medians of the first, the middle and the last sixth, between faults.

>>> percentile([4, 1, 3, 2], 0.5), percentile(range(1, 101), 0.99), percentile([], 0.5)
(2, 99, None)
"""

import math
from dataclasses import asdict, dataclass

#: PostgreSQL looks once a minute for what to vacuum. Of 2,000 events a second each leaves two dead tuples: one as it is
#: delivered, one as it is purged.
DEAD_IN_A_MINUTE = 60 * 2 * 2000
#: So many seconds after a fault do not count as calm.
AFTERMATH = 15


@dataclass(frozen=True)
class Metric:
    """A column of the samples. It is flat if its last median exceeds the first by at most `share` of it, or by `slack`."""

    name: str
    column: str
    unit: str
    share: float
    slack: float


METRICS = [
    Metric("Memory of the node that ran all the time", "rss_first", "MiB", 0.25, 8),
    Metric("Memory of the largest node", "rss_most", "MiB", 0.25, 8),
    Metric("File descriptors of the node that ran all the time", "fds_first", "", 0.1, 3),
    Metric("File descriptors of the node with the most", "fds_most", "", 0.1, 3),
    Metric("Threads of the node with the most", "threads_most", "", 0.1, 2),
    Metric("Table without indexes", "table", "MiB", 0.25, 32),
    Metric("Indexes", "indexes", "MiB", 0.25, 32),
    Metric("Database", "database", "MiB", 0.25, 64),
    Metric("Live rows", "live", "", 0.15, 20_000),
    Metric("Dead tuples", "dead", "", 0.5, DEAD_IN_A_MINUTE),
    Metric("Pending events", "pending", "", 0.5, 2_000),
    Metric("Latency, median", "latency_p50", "ms", 0.5, 50),
    Metric("Latency, 99th percentile", "latency_p99", "ms", 1.0, 250),
    Metric("CPU of the relays", "cpu_relays", "cores", 0.25, 0.1),
    Metric("CPU of the database", "cpu_database", "cores", 0.25, 0.1),
]


@dataclass
class Trend:
    """A metric over the run."""

    name: str
    unit: str
    first: float | None
    middle: float | None
    last: float | None
    flat: bool

    as_dict = asdict


def value_of(sample, column):
    """A killed PostgreSQL forgets its counts of rows, and counts from nothing until it has vacuumed the table.

    >>> value_of({"live": 7, "vacuums": 0}, "live"), value_of({"live": 7, "vacuums": 1}, "live"), value_of({}, "live")
    (None, 7, None)
    """
    return None if column in ("live", "dead") and sample.get("vacuums") == 0 else sample.get(column)


def percentile(values, share):
    """The smallest value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def calm(samples, faults):
    """The samples that no fault touches, neither itself nor its aftermath."""
    return [sample for sample in samples
            if not any(fault.began <= sample["t"] and sample["t"] - sample["seconds"] <= fault.ended + AFTERMATH
                       for fault in faults)]


def trends(samples, faults, begin, end, without=()):
    """The medians of each metric but some in the first, the middle and the last sixth of the time from `begin` to `end`."""
    quiet, sixth = calm(samples, faults), (end - begin) / 6
    return [trend(metric, quiet, begin, sixth) for metric in METRICS if metric.column not in without]


def trend(metric, samples, begin, sixth):
    def median(start):
        values = (value_of(sample, metric.column) for sample in samples if start <= sample["t"] <= start + sixth)
        return percentile([value for value in values if value is not None], 0.5)

    first, middle, last = median(begin), median(begin + 2.5 * sixth), median(begin + 5 * sixth)
    return Trend(metric.name, metric.unit, first, middle, last, is_flat(metric, first, last))


def is_flat(metric, first, last):
    """A metric without a value in the first or the last sixth proves nothing, and is not flat."""
    if first is None or last is None:
        return False
    return last - first <= max(metric.share * first, metric.slack)
