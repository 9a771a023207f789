"""The entries of a Redis stream, read while it is written, and trimmed once they are read."""

import socket
import threading

from chaos.servers.redis import answer, command


class Stream:
    """Hands each entry to `take(event_id, key, body, at)`. The time is Redis's own, from the entry's id."""

    AT_ONCE = 5000
    PAUSE = 0.05
    TRIM_AFTER = 10_000

    def __init__(self, port, name, take):
        self.name, self.take = name, take
        self.last, self.untrimmed = b"0", 0
        self.error = None
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._file = self._connection.makefile("rb")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def close(self):
        """Reads what is there, and ends."""
        self._stop.set()
        self._thread.join(600)
        self._connection.close()

    def _follow(self):
        try:
            while True:
                stopping = self._stop.is_set()
                found = self._read()
                if not found and stopping:
                    return
                if found < self.AT_ONCE:
                    self._stop.wait(self.PAUSE)
        except Exception as error:  # Whatever it is, the run must not go on without its record.
            self.error = error

    def _read(self):
        found = self._ask("XREAD", "COUNT", self.AT_ONCE, "STREAMS", self.name, self.last)
        entries = found[0][1] if found else []
        for place, fields in entries:
            entry = dict(zip(fields[::2], fields[1::2]))
            at = int(place.partition(b"-")[0]) / 1000
            self.take(entry[b"id"].decode(), entry.get(b"key", b"").decode(), entry[b"body"].decode(errors="replace"), at)
        if entries:
            self.last = entries[-1][0]
            self.untrimmed += len(entries)
        if self.untrimmed >= self.TRIM_AFTER:
            self._ask("XTRIM", self.name, "MINID", "~", self.last)
            self.untrimmed = 0
        return len(entries)

    def _ask(self, *words):
        self._connection.sendall(command(*words))
        return answer(self._file)
