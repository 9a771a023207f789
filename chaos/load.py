"""The load of a run: transactions that insert events by SQL, and the record of what became of each."""

import random
import threading
import time
from dataclasses import dataclass, field

from chaos.events import event, payload
from chaos.processes import ChaosError

ROLLED_BACK_SHARE = 0.05
COLUMNS = "event_id, event_type, aggregate_type, aggregate_id, payload"


@dataclass
class Written:
    """The outcome of every transaction: event id to key and payload."""

    committed: dict = field(default_factory=dict)
    #: The server did not say whether the commit took effect; the table does.
    unknown: dict = field(default_factory=dict)
    rolled_back: dict = field(default_factory=dict)


class Load:
    """Writers on connections of their own, some hundreds of events a second, with keys, in transactions of several rows.

    Each writer has keys of its own, so that the transactions of a key follow one another, as those of an application that locks
    what a key stands for. In mode `ordered`, where the whole table is one key, there is one writer. One transaction in twenty
    is rolled back. After an error a writer connects anew and goes on with other keys: the failed transaction may still end.
    """

    def __init__(self, database, *, rate=500, keys=200, rows=10, note=40, event_type="order.placed",
                 writers=None):
        self.database, self.rate, self.keys, self.rows, self.note = database, rate, keys, rows, note
        self.event_type = event_type
        self.writers = writers or database.concurrent_writers
        self.written = Written()
        self.errors = 0
        #: Seconds: the longest transaction.
        self.longest = 0.0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = []

    def start(self):
        for number in range(self.writers):
            pause = self.rows * self.writers / self.rate
            thread = threading.Thread(target=self._write, args=(number, pause), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            if thread.is_alive():
                raise ChaosError("a writer did not stop")
        self._threads = []

    def _write(self, writer, pause):
        random_ = random.Random(writer)
        session, number, sessions, due = None, 0, 0, time.monotonic()
        while not self._stop.is_set():
            if session is None:
                session = self.database.session()
                sessions += 1
            number += 1
            keys = f"key-{writer}-{sessions}"
            ids = [f"w{writer}-{number}-{row}" for row in range(self.rows)]
            events = {id: event(id, f"{keys}-{random_.randrange(self.keys)}", self.note) for id in ids}
            back = random_.random() < ROLLED_BACK_SHARE
            began = time.monotonic()
            done = session.run(self._sql(events, "rollback" if back else "commit"))
            with self._lock:
                self.longest = max(self.longest, time.monotonic() - began)
                if done is None:
                    self.errors += 1
                outcome = "unknown" if done is None else "rolled_back" if back else "committed"
                getattr(self.written, "rolled_back" if back else outcome).update(events)
            if done is None:
                session.close()
                session = None
                self._stop.wait(0.2)
            due = max(due + pause, time.monotonic() - 1)
            self._stop.wait(max(0.0, due - time.monotonic()))
        if session is not None:
            session.close()

    def _sql(self, events, end):
        values = ", ".join(f"('{id}', '{self.event_type}', 'order', '{event.key}', '{payload(id, self.note)}')"
                           for id, event in events.items())
        return f"begin; insert into outbox_event ({COLUMNS}) values {values}; {end};"

    def count(self):
        with self._lock:
            return len(self.written.committed)


def insert_backlog(database, event_type, count, keys):
    """Inserts committed events in bulk, and returns them by their ids."""
    ids = [f"{event_type}-{number}" for number in range(count)]
    events = {id: event(id, f"{event_type}-key-{number % keys}") for number, id in enumerate(ids)}
    session = database.session()
    try:
        for start in range(0, count, 1000):
            values = ", ".join(f"('{id}', '{event_type}', 'order', '{events[id].key}', '{payload(id)}')"
                               for id in ids[start:start + 1000])
            sql = f"begin; insert into outbox_event ({COLUMNS}) values {values}; commit;"
            if session.run(sql, 60) is None:
                raise ChaosError("the backlog could not be written")
    finally:
        session.close()
    return events
