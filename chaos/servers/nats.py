"""Private NATS servers with JetStream, and a client that makes a stream and reads it."""

import json
import socket

from chaos.events import Received, digest
from chaos.processes import ChaosError, Process, free_port, wait_until


class Nats:
    """A server whose data survive a kill. `section` is its part of a relay's file."""

    kind = "nats"
    target = "chaos"

    def __init__(self, folder, name="nats"):
        self.name, self.port = name, free_port()
        self.process = Process(["nats-server", "--addr", "127.0.0.1", "--port", self.port, "--jetstream",
                                "--store_dir", f"{folder}/{name}"], f"{folder}/{name}.log")

    def start(self):
        self.process.start()
        wait_until("NATS answers", self.answers, 30)
        return self

    def answers(self):
        try:
            with NatsClient(self.port) as client:
                return client.request("$JS.API.INFO", "") is not None
        except (OSError, ChaosError):
            return False

    def create(self):
        self.start()
        with NatsClient(self.port) as client:
            made = client.request(f"$JS.API.STREAM.CREATE.{self.target}",
                                  json.dumps({"name": self.target, "subjects": [self.target], "storage": "file"}))
        if "error" in made:
            raise ChaosError(f"the stream was not made: {made}")
        return self

    def close(self):
        self.process.kill()

    def section(self, extra=""):
        return f'[publisher.{self.name}]\nkind = "nats"\nurl = "nats://127.0.0.1:{self.port}"\n{extra}\n'

    def consume(self):
        """The events of all stored messages, in their order."""
        with NatsClient(self.port) as client:
            return client.stored(self.target)


class NatsClient:
    """As much of the protocol as the runs need: requests, and the messages of a stream."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.send('CONNECT {"verbose":false,"headers":true}\r\nSUB answer 1\r\n')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text.encode())

    def request(self, subject, body):
        self.send(f"PUB {subject} answer {len(body)}\r\n{body}\r\n")
        return json.loads(self.message()[1])

    def message(self):
        """The headers and the body of the next message."""
        while True:
            line = self.file.readline()
            if not line:
                raise ChaosError("NATS has closed the connection")
            words = line.split()
            if words[0] == b"PING":
                self.send("PONG\r\n")
            elif words[0] == b"MSG":
                return b"", self.take(int(words[-1]))
            elif words[0] == b"HMSG":
                size = int(words[-2])
                data = self.take(int(words[-1]))
                return data[:size], data[size:]

    def take(self, size):
        data = self.file.read(size)
        self.file.read(2)
        return data

    def stored(self, stream):
        count = self.request(f"$JS.API.STREAM.INFO.{stream}", "")["state"]["messages"]
        self.send("SUB stored 2\r\n")
        consumer = {"stream_name": stream, "config": {"deliver_subject": "stored", "ack_policy": "none",
                                                      "deliver_policy": "all"}}
        body = json.dumps(consumer)
        self.send(f"PUB $JS.API.CONSUMER.CREATE.{stream} made {len(body)}\r\n{body}\r\n")
        found = []
        while len(found) < count:
            headers, body = self.message()
            found.append(Received(header(headers, b"event-id"), header(headers, b"event-key"), digest(body)))
        return found


def header(headers, name):
    for line in headers.split(b"\r\n"):
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip().decode()
    return ""
