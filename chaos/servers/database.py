"""What all databases under test have in common: a folder, tables, sessions that write, and rows to read at the end."""

import os
import queue
import subprocess
import threading
import time
from dataclasses import dataclass

from chaos.processes import ChaosError, wait_until

TABLE = "outbox_event"
PENDING = "status in (0, 2)"


@dataclass(frozen=True)
class Row:
    """A row of the event table, as it stands at the end of a run."""

    seq: int
    event_id: str
    key: str
    status: int
    error: str = ""


class Database:
    """A private database server; subclasses say how to start it and how to talk to it."""

    kind = ""
    #: How many connections the load writes on.
    concurrent_writers = 2
    #: Statements: the time in seconds since 1970; and rows of a name and a number, of which those in BYTES are sizes.
    WALL_CLOCK = STATISTICS = None
    BYTES = ("table", "indexes", "database", "written")

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def query(self, sql):
        """The rows of a statement, as lists of texts."""
        raise NotImplementedError

    def session(self):
        """A connection that stays open."""
        raise NotImplementedError

    def execute(self, sql):
        self.query(sql)

    def run_script(self, text):
        """Runs the statements of a file."""
        raise NotImplementedError

    def answers(self):
        try:
            return self.query("select 1") == [["1"]]
        except (ChaosError, subprocess.TimeoutExpired):
            return False

    def is_writable(self):
        """Whether nobody keeps all others from writing."""
        return True

    def revive(self):
        """Makes sure that the server runs, which may have given up."""
        self.started()

    def rows(self):
        found = self.query(f"select seq, event_id, coalesce(ordering_key, aggregate_id, ''), status, "
                           f"coalesce(substr(last_error, 1, 200), '') from {TABLE} order by seq")
        return [Row(int(row[0]), row[1], row[2], int(row[3]), row[4]) for row in found]

    def highest(self):
        return int(self.query(f"select coalesce(max(seq), 0) from {TABLE}")[0][0])

    def pending(self, up_to=None):
        """The number of rows that are not delivered yet, of the first rows of the table or of all."""
        bound = "" if up_to is None else f" and seq <= {up_to}"
        return int(self.query(f"select count(*) from {TABLE} where {PENDING}{bound}")[0][0])


class CliSession:
    """A command-line client that is kept open: statements go in, and a mark comes out when they are through."""

    def __init__(self, command, mark, env=None):
        self.mark = mark
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True, env=env, start_new_session=True, bufsize=1)
        self.lines = queue.Queue()
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def run(self, sql, seconds=20):
        """Runs statements; the lines that they print, or None if nobody knows whether they took effect."""
        self.number += 1
        wanted = f"mark-{self.number}"
        try:
            self.child.stdin.write(f"{sql}\n{self.mark.format(wanted)}\n")
            self.child.stdin.flush()
        except (OSError, ValueError):
            return None
        printed, deadline = [], time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return None
            if line is None:
                return None
            if line == wanted:
                return printed
            printed.append(line)

    def close(self):
        self.child.kill()
        self.child.wait(10)
