"""The test of the checker: each kind of finding is planted into records that are sound, and has to be reported."""

import copy
import doctest
import json
import os
import sqlite3
from types import SimpleNamespace

from chaos import checker, course, events, jobs, report
from chaos.arrivals import Arrivals
from chaos.checker import check
from chaos.events import Received, event
from chaos.faults import self_test as faults
from chaos.load import COLUMNS, Load, Written
from chaos.servers.database import Row
from chaos.soak import self_test as soak

EVENTS, KEYS = 1000, 10


class Records:
    """Sound records of a run: committed, rolled back and unknown transactions, a table, arrivals."""

    def __init__(self):
        self.written, self.rows, self.arrivals = Written(), [], []
        for number in range(EVENTS):
            id, key = f"e-{number}", f"k-{number % KEYS}"
            (self.written.unknown if number % 50 == 0 else self.written.committed)[id] = event(id, key)
            self.rows.append(Row(number + 1, id, key, 1))
            self.arrivals.append(Received(id, *event(id, key)))
        self.written.rolled_back["back"] = event("back", "k-1")
        self.written.unknown["nowhere"] = event("nowhere", "k-2")

    def set_status(self, id, status):
        self.rows = [Row(row.seq, row.event_id, row.key, status if row.event_id == id else row.status)
                     for row in self.rows]

    def verdict(self, order="key", **options):
        return check(self.written, self.rows, self.arrivals, order, **options)


def plant_lost(records):
    plant_unarrived(records)
    records.rows = [row for row in records.rows if row.event_id != "e-77"]


def plant_unarrived(records):
    records.arrivals = [arrival for arrival in records.arrivals if arrival.event_id != "e-77"]


def plant_rolled_back(records):
    records.arrivals.append(Received("back", *event("back", "k-1")))


def plant_never_written(records):
    records.arrivals.append(Received("ghost", *event("ghost", "k-1")))


def plant_in_the_table_alone(records):
    records.rows.append(Row(EVENTS + 1, "ghost", "k-1", 1))
    plant_never_written(records)


def plant_stuck(records):
    records.set_status("e-77", 2)


def plant_dead(records):
    records.set_status("e-77", 3)


def plant_reordered(records):
    records.arrivals[77], records.arrivals[87] = records.arrivals[87], records.arrivals[77]


def plant_doubled(records):
    records.arrivals.append(records.arrivals[77])


def plant_another_payload(records):
    records.arrivals[77] = records.arrivals[77]._replace(payload=records.arrivals[78].payload)


def plant_another_key(records):
    records.arrivals[77] = records.arrivals[77]._replace(key="k-8")


def plant_a_repetition_with_another_payload(records):
    records.arrivals.append(records.arrivals[77]._replace(payload=records.arrivals[78].payload))


#: What is planted, and what has to be found: the findings that are not empty, and the duplicates.
PLANTED = [
    (plant_lost, {"lost": ["e-77"]}, 0),
    (plant_unarrived, {"lost": ["e-77"], "invented": ["e-77"]}, 0),
    (plant_rolled_back, {"invented": ["back"]}, 0),
    (plant_never_written, {"invented": ["ghost"]}, 0),
    (plant_in_the_table_alone, {"invented": ["ghost"]}, 0),
    (plant_stuck, {"stuck": ["e-77"]}, 0),
    (plant_dead, {"dead": ["e-77"]}, 0),
    (plant_reordered, {"out_of_order": ["e-77"]}, 0),
    (plant_doubled, {}, 1),
    (plant_another_payload, {"changed": ["e-77"]}, 0),
    (plant_another_key, {"changed": ["e-77"]}, 0),
    (plant_a_repetition_with_another_payload, {"changed": ["e-77"]}, 1),
]


def findings(verdict):
    return {name: getattr(verdict, name) for name in verdict.FINDINGS if getattr(verdict, name)}


def expect(what, verdict, wanted, duplicates):
    found = findings(verdict)
    good = found == wanted and verdict.duplicates == duplicates and verdict.passed() == (not wanted)
    return say(what, good, f"{found}, {verdict.duplicates} duplicates")


def say(what, good, seen):
    print(f"{what}: {'found' if good else f'MISSED: {seen}'}")
    return good


def exceptions(sound):
    """What looks like a finding and is none."""
    late = copy.deepcopy(sound)
    late.arrivals.append(late.arrivals[5])
    yield "a late repetition is no disorder", late.verdict(), {}, 1
    other = copy.deepcopy(sound)
    other.arrivals[77], other.arrivals[78] = other.arrivals[78], other.arrivals[77]
    yield "keys have no order among each other", other.verdict(), {}, 0
    yield "but the table has one in mode ordered", other.verdict("table"), {"out_of_order": ["e-77"]}, 0
    yield "and none in other modes", other.verdict(None), {}, 0
    failover = copy.deepcopy(sound)
    failover.rows = [row for row in failover.rows if row.event_id != "e-77"]
    yield "what a replica never received is no loss", failover.verdict(database_may_lose=True), {}, 0
    yield "but without a failover it is", failover.verdict(), {"lost": ["e-77"], "invented": ["e-77"]}, 0


def payloads():
    """What the writers insert, on its way through a table and a line: as it is, and with a letter that is another one."""
    database = sqlite3.connect(":memory:")
    database.execute(f"create table outbox_event ({COLUMNS})")
    load = Load(SimpleNamespace(concurrent_writers=1))
    load.written.committed["w"] = event("w", "k", load.note)
    database.executescript(load._sql(load.written.committed, "commit"))
    key, payload = database.execute("select aggregate_id, payload from outbox_event").fetchone()
    line = json.dumps({"event_id": "w", "seq": 1, "key": key, "payload": payload, "node": "node-1"})
    unseen, good = {"lost": ["w"], "invented": ["w"]}, True
    for what, arrived, wanted in (("as it was written", line, {}),
                                  ("with another letter", line.replace("xx", "xy", 1), {"changed": ["w"]}),
                                  ("without its key", line.replace('"k"', "null"), {"changed": ["w"]}),
                                  ("without a payload", line.replace("payload", "body"), unseen),
                                  ("that is cut off", line[:-5], unseen)):
        arrivals = Arrivals(os.devnull)
        arrivals._take(arrived.encode(), 0.0)
        good &= expect(f"a line {what}", check(load.written, [Row(1, "w", "k", 1)], arrivals.all), wanted, 0)
        good &= say(f"a line {what} is counted as broken, or not", arrivals.broken == (wanted == unseen), arrivals.broken)
    return good


def beside():
    """Runs at a time: two of them meet, one that ends without a result has failed, and one that measures is the last."""
    meeting, results = jobs.processes.Barrier(2), []

    def trial(name):
        if name == "dies":
            os._exit(9)
        if name != "alone":
            meeting.wait(30)
        return course.Result(name, passed=True)

    cells = [Trial(name) for name in ("alone", "dies", "first", "second")]
    jobs.run_all(cells, 3, results.append, lambda cell: trial(cell.name))
    found = sorted((result.cell, result.passed, result.beside) for result in results[:-1])
    good = (found == [("dies", False, 3), ("first", True, 3), ("second", True, 3)]
            and (results[-1].cell, results[-1].beside) == ("alone", 1))
    print(f"runs at a time: {'as told' if good else f'MISSED: {results}'}")
    return good


class Trial:
    """A cell, as far as it matters to who runs it."""

    def __init__(self, name):
        self.name, self.fault = name, SimpleNamespace(alone=name == "alone")

    def __str__(self):
        return self.name


def run():
    """The exit code: 0 if everything was found."""
    sound = Records()
    good = expect("nothing is planted", sound.verdict(), {}, 0)
    for plant, wanted, duplicates in PLANTED:
        records = copy.deepcopy(sound)
        plant(records)
        good &= expect(plant.__name__.replace("_", " "), records.verdict(), wanted, duplicates)
    for what, verdict, wanted, duplicates in exceptions(sound):
        good &= expect(what, verdict, wanted, duplicates)
    good &= payloads()
    good &= beside()
    for module in (events, checker, report):
        failed, tried = doctest.testmod(module)
        print(f"{module.__name__}: {tried} examples, {failed} failed")
        good &= failed == 0 and tried > 0
    good &= faults.run()
    good &= soak.run()
    return 0 if good else 1
