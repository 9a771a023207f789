"""The figures of a run, from its samples, its faults and its repeated arrivals: as it ends, or from its records later.

>>> log = [Event("cut", 10, 20), Event("cut", 60, 70), Event("stall", 80, 90)]
>>> samples = [{"t": float(t), "pending": 10 if t in (30, 95) else 5000} for t in range(5, 100, 5)]
>>> [backlog_gone(log, number, samples, 1000) for number in range(3)]
[10.0, None, 5.0]
"""

import json
from collections import Counter
from pathlib import Path

from chaos.soak.faults import Event, attribute
from chaos.soak.flatness import percentile, trends

#: A repeated arrival is explained by a fault that ended at most so many seconds before the first arrival.
GRACE = 20
#: Seconds after the table has filled from which on a run can tell what grows: a sixth then holds calm samples between faults, and
#: PostgreSQL has vacuumed more than once in it.
LONG_ENOUGH = 900
#: What a run leaves in its folder.
RECORDS = ("summary.json", "samples.jsonl", "faults.json", "repeated.json")
#: A backlog is gone when so few seconds of the load are pending.
BACKLOG = 0.5


def add(result, samples, log, repeated):
    """Adds the figures to the summary, and what speaks against the run to its problems."""
    result.problems_of_the_run = list(result.problems)
    explained, struck = attribute(repeated, log, GRACE), Counter(event.kind for event in log)
    for kind in sorted(struck):
        numbers = [number for number, event in enumerate(log) if event.kind == kind]
        gone = [backlog_gone(log, number, samples, result.rate) for number in numbers]
        slowest = [slowest_event(log, number, samples) for number in numbers]
        result.faults[kind] = {
            "struck": struck[kind], "duplicates": explained.get(kind, 0),
            "slowest_s": max((seconds for seconds in slowest if seconds is not None), default=None),
            "backlog_gone_s": percentile([seconds for seconds in gone if seconds is not None], 0.5),
            "overtaken": gone.count(None)}
    if explained.get(""):
        result.problems.append(f"{explained['']} duplicates that no fault explains")
    without = () if "/postgres" in result.cell else ("dead",)
    found = trends(samples, log, result.warm_up, result.seconds, without)
    result.trends = [trend.as_dict() for trend in found]
    result.problems += [f"not flat: {trend.name} was {trend.first} {trend.unit}, and is {trend.last}".strip()
                        for trend in found if not trend.flat and result.growth_is_judged()]


def span(log, number):
    """A fault's time, which lasts until the next one."""
    return log[number].began, log[number + 1].began if number + 1 < len(log) else float("inf")


def slowest_event(log, number, samples):
    """The highest latency from a fault to the next one, in seconds."""
    begin, end = span(log, number)
    found = [sample["latency_max"] for sample in samples
             if sample["latency_max"] is not None and begin <= sample["t"] - sample["seconds"] and sample["t"] <= end]
    return round(max(found) / 1000, 1) if found else None


def backlog_gone(log, number, samples, rate):
    """Seconds from the end of a fault until hardly anything is pending; None if the next one comes first."""
    _, end = span(log, number)
    ended = log[number].ended
    return next((round(sample["t"] - ended, 1) for sample in samples if ended < sample["t"] <= end
                 and sample.get("pending") is not None and sample["pending"] < rate * BACKLOG), None)


def read(folder):
    """The samples, the faults and the repeated arrivals that a run has left in its folder."""
    folder = Path(folder)
    with open(folder / "samples.jsonl") as file:
        samples = [json.loads(line) for line in file]
    log = [Event(**event) for event in json.loads((folder / "faults.json").read_text())]
    return samples, log, json.loads((folder / "repeated.json").read_text())
