"""The load of a soak: the writers of the matrix, with a compact record, and at a rate that outlives an outage."""

import random
import time

from chaos.load import COLUMNS, ROLLED_BACK_SHARE, Load
from chaos.soak.tally import COMMITTED, ROLLED_BACK, UNKNOWN, body_of, name_of


class Writers(Load):
    """Writes so many committed events a second. What an outage cost is made up for afterwards, at twice the rate."""

    def __init__(self, database, tally, **options):
        super().__init__(database, rows=tally.rows, keys=tally.keys, writers=len(tally.notes), **options)
        self.tally = tally

    def _write(self, writer, pause):
        pause *= 1 - ROLLED_BACK_SHARE
        random_, notes = random.Random(writer), self.tally.notes[writer]
        session, sessions, due = None, 0, time.monotonic()
        while not self._stop.is_set():
            if session is None:
                session = self.database.session()
                sessions += 1
            number, back = notes.begin(sessions), random_.random() < ROLLED_BACK_SHARE
            began = time.monotonic()
            printed = session.run(self.transaction(writer, number, back))
            self.longest = max(self.longest, time.monotonic() - began)
            at = last_number(printed)
            if at is None:
                notes.end(number, UNKNOWN)
                self.errors += 1
                session.close()
                session = None
                self._stop.wait(0.2)
            else:
                notes.end(number, ROLLED_BACK if back else COMMITTED, at)
            due += pause
            now = time.monotonic()
            self._stop.wait(due - now if due > now else max(0.0, pause / 2 - (now - began)))
        if session is not None:
            session.close()

    def transaction(self, writer, number, back):
        """The statements: the database tells its time once the transaction is over."""
        values = ", ".join(f"('{name_of(event)}', '{self.event_type}', 'order', '{self.tally.key(event)}', '{body_of(event)}')"
                           for event in self.tally.events(writer, number))
        return (f"begin; insert into outbox_event ({COLUMNS}) values {values}; {'rollback' if back else 'commit'};"
                f" {self.database.WALL_CLOCK};")


def last_number(printed):
    """The time that the database told, or None if it did not."""
    try:
        return float(printed[-1])
    except (TypeError, IndexError, ValueError):
        return None
