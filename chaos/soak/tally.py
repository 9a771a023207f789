"""A compact record of millions of events: the outcome of each transaction, and the arrivals of each event.

An event is a number; its writer, its transaction and its key follow from that. So a transaction takes a few bytes, an event five,
and order is judged while events arrive.
"""

from array import array

from chaos.checker import DEAD, DONE, Verdict
from chaos.events import payload

UNDER_WAY, COMMITTED, ROLLED_BACK, UNKNOWN = range(4)
PREFIX = "soak-"
#: Letters in a payload, beside the event's id.
NOTE = 40


class Notes:
    """The transactions of one writer, in their order."""

    def __init__(self):
        self.outcomes, self.sessions, self.committed_at = bytearray(), array("I"), array("d")

    def begin(self, session):
        self.sessions.append(session)
        self.committed_at.append(0.0)
        self.outcomes.append(UNDER_WAY)
        return len(self.outcomes) - 1

    def end(self, number, outcome, at=0.0):
        self.committed_at[number] = at
        self.outcomes[number] = outcome


class Tally:
    """The notes of all writers, and the arrivals. `order` is `key`, `table` or None. Times are seconds of the wall clock."""

    def __init__(self, writers, rows, keys, order, began):
        self.rows, self.keys, self.order, self.began = rows, keys, order, began
        self.notes = [Notes() for _ in range(writers)]
        #: Arrivals of each event, 255 at most, and milliseconds from the beginning to the first of them.
        self.seen, self.first_at = bytearray(), array("I")
        #: Events that arrived for the first time since they were last asked for.
        self.fresh = []
        #: (event, first arrival, this arrival), in seconds from the beginning.
        self.repeated = []
        self.strange, self.out_of_order, self.changed = [], [], []
        self.latest = {}
        self.arrived = 0

    def events(self, writer, number):
        """The events of a writer's transaction."""
        first = (number * len(self.notes) + writer) * self.rows
        return range(first, first + self.rows)

    def place(self, event):
        """The writer and the number of an event's transaction."""
        number, writer = divmod(event // self.rows, len(self.notes))
        return writer, number

    def key(self, event):
        """The key of an event: one of its writer's session."""
        writer, number = self.place(event)
        return f"{writer}-{self.notes[writer].sessions[number]}-{(event * 2654435761 >> 9) % self.keys}"

    def is_written(self, event):
        writer, number = self.place(event)
        return event >= 0 and number < len(self.notes[writer].outcomes)

    def outcome(self, event):
        writer, number = self.place(event)
        return self.notes[writer].outcomes[number]

    def take(self, event_id, key, body, at):
        """Counts an arrival."""
        event = number_of(event_id)
        if event is None or not self.is_written(event) or self.key(event) != key:
            self.strange.append(event_id)
            return
        if body != body_of(event):
            self.changed.append(event_id)
        if event >= len(self.seen):
            more = event + 1 - len(self.seen)
            self.seen.extend(bytes(more))
            self.first_at.extend([0] * more)
        if self.seen[event]:
            self.seen[event] = min(255, self.seen[event] + 1)
            self.repeated.append((event, self.first_at[event] / 1000, at - self.began))
            return
        self.seen[event] = 1
        self.first_at[event] = max(0, round((at - self.began) * 1000))
        self.arrived += 1
        self.fresh.append(event)
        self.judge_order(event, key)

    def judge_order(self, event, key):
        if self.order is None:
            return
        scope = key if self.order == "key" else ""
        latest = self.latest.get(scope, -1)
        if event < latest:
            self.out_of_order.append(name_of(event))
        else:
            self.latest[scope] = event

    def has_arrived(self, event):
        return event < len(self.seen) and self.seen[event] > 0

    def latencies(self):
        """Seconds from commit to first arrival, of the events since the last call whose commit is noted."""
        events, self.fresh = self.fresh, []
        found = []
        for event in events:
            writer, number = self.place(event)
            notes = self.notes[writer]
            if notes.outcomes[number] == UNDER_WAY:
                self.fresh.append(event)
            elif notes.outcomes[number] == COMMITTED:
                found.append(max(0.0, self.began + self.first_at[event] / 1000 - notes.committed_at[number]))
        return found

    def committed(self):
        """The number of events of which the commit is certain."""
        return self.rows * sum(notes.outcomes.count(COMMITTED) for notes in self.notes)

    def verdict(self, table):
        """The findings, from the records and from (event id, status) of the rows that are still in the table."""
        verdict = Verdict(events=0, duplicates=len(self.repeated))
        kept = self.judge_table(verdict, table)
        for writer, notes in enumerate(self.notes):
            for number, outcome in enumerate(notes.outcomes):
                self.judge_transaction(verdict, outcome, self.events(writer, number), kept)
        verdict.invented += self.strange
        verdict.out_of_order, verdict.changed = self.out_of_order, self.changed
        return verdict

    def judge_table(self, verdict, table):
        """Returns the events that are still there, delivered or not."""
        kept = set()
        for event_id, status in table:
            event = number_of(event_id)
            if event is None or not self.is_written(event) or self.outcome(event) == ROLLED_BACK:
                verdict.invented.append(event_id)
                continue
            if status == DEAD:
                verdict.dead.append(event_id)
            elif status != DONE:
                verdict.stuck.append(event_id)
            elif not self.has_arrived(event):
                verdict.invented.append(event_id)
                verdict.lost.append(event_id)
            kept.add(event)
        return kept

    def judge_transaction(self, verdict, outcome, events, kept):
        arrived = [event for event in events if self.has_arrived(event)]
        if outcome == ROLLED_BACK:
            verdict.invented += map(name_of, arrived)
            return
        # A transaction is whole: one event of it in sight proves all of them committed.
        if outcome == COMMITTED or arrived or not kept.isdisjoint(events):
            verdict.events += len(events)
            if len(arrived) < len(events):
                verdict.lost += [name_of(event) for event in events if not self.has_arrived(event) and event not in kept]


def name_of(event):
    return f"{PREFIX}{event}"


def body_of(event):
    return payload(name_of(event), NOTE)


def number_of(event_id):
    text = event_id.removeprefix(PREFIX)
    return int(text) if text != event_id and text.isascii() and text.isdigit() else None
