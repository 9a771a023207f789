"""What arrives, as lines of JSON in a file, read while they are written."""

import json
import os
import threading
import time
from collections import namedtuple

from chaos.events import digest



class Arrival(namedtuple("Arrival", "event_id seq key payload node at")):
    """A line, without its payload, of which the digest is kept, and the time at which it was seen."""

    __slots__ = ()

    def is_from(self, node):
        return self.node.startswith(node.name + "-")


class Arrivals:
    """Follows the file that all relays append to, and stamps each line with the time at which it was seen."""

    PAUSE = 0.02

    def __init__(self, path):
        self.path = path
        self.all = []
        #: Lines that are cut off, which the documentation allows after a crash and on a full disk, or that lack a field.
        self.broken = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self):
        open(self.path, "a").close()
        os.chmod(self.path, 0o666)
        self._thread.start()
        return self

    def stop(self):
        self._stop.set()
        self._thread.join(30)

    def _follow(self):
        with open(self.path, "rb") as file:
            rest = b""
            while True:
                stopping = self._stop.is_set()
                data = file.read()
                now = time.monotonic()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(line, now)
                if stopping and not data:
                    self.broken += bool(rest)
                    return
                self._stop.wait(self.PAUSE)

    def _take(self, line, now):
        try:
            row = json.loads(line)
            payload = digest(row["payload"])
            self.all.append(Arrival(row["event_id"], row["seq"], row["key"], payload, row["node"], now))
        except (ValueError, KeyError, TypeError):
            self.broken += 1

    def count(self):
        return len(self.all)

    def first_after(self, moment):
        """Seconds from a moment to the first arrival after it."""
        return next((arrival.at - moment for arrival in self.all if arrival.at >= moment), None)

    def longest_gap(self, begin, end):
        """The longest time without an arrival between two moments."""
        times = [begin, *(arrival.at for arrival in self.all if begin <= arrival.at <= end), end]
        return max(later - earlier for earlier, later in zip(times, times[1:]))
