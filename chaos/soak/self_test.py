"""The test of the compact checker and of the verdict on what grows: findings are planted, and have to be reported."""

import doctest

from chaos.soak import faults, figures, flatness
from chaos.soak.faults import Event
from chaos.soak.flatness import METRICS, trends
from chaos.soak.tally import COMMITTED, ROLLED_BACK, UNKNOWN, Tally, body_of, name_of

WRITERS, ROWS, KEYS, TRANSACTIONS = 3, 10, 4, 40
#: Transactions of the first writer that ended otherwise.
BACK, NOWHERE = 7, 9
AN_HOUR = 3600


class Records:
    """Sound records: all that was committed has arrived, in its order; half of it is still in the table."""

    def __init__(self, order="key"):
        self.tally = Tally(WRITERS, ROWS, KEYS, order, began=1000.0)
        self.arrivals, self.table = [], []
        #: The payloads with which some events arrive, instead of their own.
        self.bodies = {}
        for number in range(TRANSACTIONS):
            for writer in range(WRITERS):
                self.write(writer, number)

    def write(self, writer, number):
        notes = self.tally.notes[writer]
        notes.begin(session=number // 20)
        if (writer, number) in ((0, BACK), (0, NOWHERE)):
            notes.end(number, ROLLED_BACK if number == BACK else UNKNOWN)
            return
        notes.end(number, UNKNOWN if number % 10 == 3 else COMMITTED, 1000.0 + number)
        for event in self.tally.events(writer, number):
            self.arrivals.append(event)
            if number >= TRANSACTIONS // 2:
                self.table.append([name_of(event), 1])

    def set_status(self, event, status):
        self.table = [[event_id, status if event_id == name_of(event) else old] for event_id, old in self.table]

    def swap(self, one, other):
        first, second = self.arrivals.index(one), self.arrivals.index(other)
        self.arrivals[first], self.arrivals[second] = other, one

    def neighbours(self, of_one_key):
        """Two events that arrive one after the other, of one key or of two."""
        return next(pair for pair in zip(self.arrivals, self.arrivals[1:])
                    if (self.tally.key(pair[0]) == self.tally.key(pair[1])) == of_one_key)

    def verdict(self):
        for event in self.arrivals:
            known = isinstance(event, int)
            body = self.bodies.get(event, body_of(event))
            self.tally.take(name_of(event) if known else event, self.tally.key(event) if known else "", body, 1050.0)
        return self.tally.verdict(self.table)


def event_of(records, number, row=5):
    return records.tally.events(0, number)[row]


def plant_lost(records):
    records.arrivals.remove(event_of(records, 5))
    return {"lost": 1}, 0


def plant_lost_half_of_an_unknown_transaction(records):
    records.arrivals.remove(event_of(records, 13))
    return {"lost": 1}, 0


def plant_lost_and_called_done(records):
    records.arrivals.remove(event_of(records, 35))
    return {"lost": 1, "invented": 1}, 0


def plant_rolled_back(records):
    records.arrivals.insert(records.arrivals.index(event_of(records, BACK + 1, row=0)), event_of(records, BACK))
    return {"invented": 1}, 0


def plant_never_written(records):
    records.arrivals += ["soak-99999999", "soak--1", "ghost"]
    return {"invented": 3}, 0


def plant_rolled_back_in_the_table(records):
    records.table.append([name_of(event_of(records, BACK)), 1])
    return {"invented": 1}, 0


def plant_stuck(records):
    records.arrivals.remove(event_of(records, 35))
    records.set_status(event_of(records, 35), 2)
    return {"stuck": 1}, 0


def plant_dead(records):
    records.set_status(event_of(records, 35), 3)
    return {"dead": 1}, 0


def plant_another_key(records):
    records.arrivals.remove(event_of(records, 5))
    records.tally.take(name_of(event_of(records, 5)), "0-0-99", body_of(event_of(records, 5)), 1050.0)
    return {"lost": 1, "invented": 1}, 0


def plant_changed(records):
    records.bodies[event_of(records, 5)] = body_of(event_of(records, 6))
    return {"changed": 1}, 0


def plant_reordered(records):
    records.swap(*records.neighbours(of_one_key=True))
    return {"out_of_order": 1}, 0


def plant_doubled(records):
    records.arrivals += [event_of(records, 5)] * 3
    return {}, 3


def plant_nothing(_):
    return {}, 0


def plant_other_order_between_keys(records):
    records.swap(*records.neighbours(of_one_key=False))
    return {}, 0


PLANTED = [plant_nothing, plant_lost, plant_lost_half_of_an_unknown_transaction, plant_lost_and_called_done, plant_rolled_back,
           plant_never_written, plant_rolled_back_in_the_table, plant_stuck, plant_dead, plant_another_key, plant_changed,
           plant_reordered, plant_doubled, plant_other_order_between_keys]


def finds(plant):
    records = Records()
    wanted, duplicates = plant(records)
    verdict = records.verdict()
    found = {name: len(getattr(verdict, name)) for name in verdict.FINDINGS if getattr(verdict, name)}
    good = found == wanted and verdict.duplicates == duplicates
    return say(f"soak, {plant.__name__.removeprefix('plant_').replace('_', ' ')}", good, f"{found}, {verdict.duplicates}")


def say(what, good, found):
    print(f"{what}: {'found' if good else f'MISSED: {found}'}")
    return good


def samples(grown=None, by=0.0, at_faults_only=False):
    """An hour of samples. One column may grow over the hour, or be high while there are faults."""
    log = [Event("stall", float(t), t + 10.0) for t in range(600, AN_HOUR, 300)]
    found = []
    for t in range(5, AN_HOUR, 5):
        sample = {"t": t, "seconds": 5.0, **{metric.column: 1_000_000.0 for metric in METRICS}}
        disturbed = any(fault.began <= t <= fault.ended + 5 for fault in log)
        if grown and (disturbed if at_faults_only else t > AN_HOUR / 2):
            sample[grown] *= 1 + by
        found.append(sample)
    return found, log


def not_flat(found, log):
    return [trend.name for trend in trends(found, log, 300, AN_HOUR) if not trend.flat]


def finds_growth():
    """Each metric is found alone when it grows beyond its bound, and not below it or at faults."""
    good = say("soak, nothing grows", not_flat(*samples()) == [], not_flat(*samples()))
    for metric in METRICS:
        much, little = (not_flat(*samples(metric.column, metric.share * factor)) for factor in (1.05, 0.95))
        bound = metric.slack <= metric.share * 1_000_000
        good &= say(f"soak, growth of {metric.column}", much == ([metric.name] if bound else []) and little == [], much + little)
    peaks = not_flat(*samples("rss_first", 3, at_faults_only=True))
    good &= say("soak, peaks at faults are no growth", peaks == [], peaks)
    gone, log = samples()
    gone = [{**sample, "dead": None} if sample["t"] > AN_HOUR / 2 else sample for sample in gone]
    good &= say("soak, a metric without values is not flat", not_flat(gone, log) == ["Dead tuples"], not_flat(gone, log))
    return good


def finds_latency():
    """Latency counts from the commit, and only for commits that are certain."""
    records = Records()
    records.verdict()
    found = sorted(records.tally.latencies())
    numbers = sorted({50.0 - number for number in range(TRANSACTIONS) if number % 10 != 3})
    return say("soak, latencies", sorted(set(found)) == numbers and records.tally.latencies() == [], found[:5])


def run():
    """True if everything was found."""
    good = all([finds(plant) for plant in PLANTED])
    good &= finds_growth() & finds_latency()
    for module in (faults, figures, flatness):
        failed, tried = doctest.testmod(module)
        print(f"{module.__name__}: {tried} examples, {failed} failed")
        good &= failed == 0 and tried > 0
    return good
