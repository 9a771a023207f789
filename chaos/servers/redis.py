"""Private Redis servers, which write each entry to their file before they answer, unless they are told to keep none."""

import socket

from chaos.events import Received, digest
from chaos.processes import ChaosError, Process, free_port, wait_until


class Redis:
    kind = "redis"
    target = "events"

    def __init__(self, folder, name="redis", *, keeps=True):
        self.name, self.port = name, free_port()
        self.process = Process(
            ["redis-server", "--bind", "127.0.0.1", "--port", self.port, "--dir", folder, "--appendonly",
             "yes" if keeps else "no", "--appendfsync", "always", "--save", "", "--daemonize", "no"], f"{folder}/{name}.log")

    def create(self):
        return self.start()

    def start(self):
        self.process.start()
        wait_until("Redis answers", self.answers, 30)
        return self

    def answers(self):
        try:
            return self.ask("PING") == b"PONG"
        except (OSError, ChaosError):
            # It says LOADING until it has read its file.
            return False

    def close(self):
        self.process.kill()

    def section(self, extra=""):
        return f'[publisher.{self.name}]\nkind = "redis"\nurl = "redis://127.0.0.1:{self.port}"\n{extra}\n'

    def consume(self):
        entries = self.ask("XRANGE", self.target, "-", "+") or []
        return [received(dict(zip(fields[::2], fields[1::2]))) for _, fields in entries]

    def ask(self, *words):
        """Sends a command and returns its answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(command(*words))
            with connection.makefile("rb") as file:
                return answer(file)


def received(entry):
    return Received(entry[b"id"].decode(), entry.get(b"key", b"").decode(), digest(entry[b"body"]))


def command(*words):
    """A command as the protocol wants it."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def answer(file):
    """Reads one value of the protocol."""
    line = file.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind == b"+":
        return rest
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == b"-1" else file.read(int(rest) + 2)[:-2]
    if kind == b"*":
        return None if rest == b"-1" else [answer(file) for _ in range(int(rest))]
    raise ChaosError(f"Redis says {line!r}")
