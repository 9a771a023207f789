"""The verdict on a run, from what was written, what the table holds at the end, and what arrived in which order.

>>> from chaos.events import Received, event
>>> from chaos.load import Written
>>> from chaos.servers.database import Row
>>> written = Written(committed={"a": event("a", "k"), "b": event("b", "k")})
>>> rows = [Row(1, "a", "k", 1), Row(2, "b", "k", 1)]
>>> a, b = (Received(id, *written.committed[id]) for id in "ab")
>>> check(written, rows, [a, b, b], order="key").summary()
'2 events, 1 duplicate'
>>> check(written, rows, [b, a], order="key").out_of_order
['a']
>>> check(written, rows, [a], order="key").lost
['b']
>>> check(written, rows, [a, b._replace(payload=a.payload)], order="key").changed
['b']
"""

from collections import Counter
from dataclasses import dataclass, field

DONE, DEAD = 1, 3


@dataclass
class Verdict:
    """The findings, each a list of event ids. A run has passed if all FINDINGS are empty."""

    #: Committed, and never arrived.
    lost: list = field(default_factory=list)
    #: Arrived, and never committed; or in the table, and never written; or DONE, and never arrived.
    invented: list = field(default_factory=list)
    #: Still pending after the time to recover.
    stuck: list = field(default_factory=list)
    #: Given up, though nothing was wrong with the event.
    dead: list = field(default_factory=list)
    #: Arrived for the first time behind a later event of its key, or of the table.
    out_of_order: list = field(default_factory=list)
    #: Arrived with another payload or another key than was written.
    changed: list = field(default_factory=list)
    #: Arrived more than once.
    duplicates: int = 0
    #: Committed, and gone with a primary whose replica had not received them.
    lost_by_database: int = 0
    events: int = 0

    FINDINGS = ("lost", "invented", "stuck", "dead", "out_of_order", "changed")

    def passed(self):
        return not any(getattr(self, name) for name in self.FINDINGS)

    def summary(self):
        parts = [f"{self.events} events", f"{self.duplicates} duplicate{'' if self.duplicates == 1 else 's'}"]
        for name in self.FINDINGS:
            if found := getattr(self, name):
                parts.append(f"{len(found)} {name.replace('_', ' ')}: {', '.join(found[:5])}")
        if self.lost_by_database:
            parts.append(f"{self.lost_by_database} lost by the database")
        return ", ".join(parts)


def check(written, rows, arrivals, order=None, database_may_lose=False):
    """Compares the records. `order` is `key`, `table` or None; `arrivals` stand in their order."""
    table = {row.event_id: row for row in rows}
    counts = Counter(arrival.event_id for arrival in arrivals)
    events = {**written.rolled_back, **written.unknown, **written.committed}
    verdict = Verdict(events=len(table), duplicates=sum(counts.values()) - len(counts))
    judge_rows(verdict, rows, counts)
    for event in written.committed:
        if event not in table:
            if database_may_lose:
                verdict.lost_by_database += 1
            else:
                verdict.lost.append(event)
    for event in counts:
        if event not in table and not (database_may_lose and event in events and event not in written.rolled_back):
            verdict.invented.append(event)
    verdict.invented += [event for event in table if event in written.rolled_back or event not in events]
    verdict.out_of_order = misplaced(counts, table, order)
    verdict.changed = changed(events, arrivals)
    return verdict


def judge_rows(verdict, rows, counts):
    """Sorts out what the table says of each event."""
    for row in rows:
        if row.status == DEAD:
            verdict.dead.append(row.event_id)
        elif row.status != DONE:
            verdict.stuck.append(row.event_id)
        elif row.event_id not in counts:
            # The table claims a delivery that did not happen; the event is lost for good.
            verdict.invented.append(row.event_id)
            verdict.lost.append(row.event_id)


def changed(events, arrivals):
    """The events of which an arrival is not what was written."""
    wrong = (arrival.event_id for arrival in arrivals
             if arrival.event_id in events and (arrival.key, arrival.payload) != events[arrival.event_id])
    return list(dict.fromkeys(wrong))


def misplaced(firsts, table, order):
    """The events that arrived for the first time behind a later one. `firsts` are in the order of first arrival."""
    found, latest = [], {}
    for event in firsts if order else ():
        if (row := table.get(event)) is None:
            continue
        scope = row.key if order == "key" else ""
        if row.seq < latest.get(scope, 0):
            found.append(event)
        latest[scope] = max(latest.get(scope, 0), row.seq)
    return found
