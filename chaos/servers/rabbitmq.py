"""Private RabbitMQ brokers with a durable queue, and as much of AMQP 0-9-1 as it takes to read that."""

import os
import socket
import struct
import subprocess

from chaos.events import Received, digest
from chaos.processes import ChaosError, Process, free_port, wait_until

PROGRAMS = "/usr/lib/rabbitmq/bin"
FRAME_END = b"\xce"
#: How many messages are asked for at once.
AT_ONCE = 100


class RabbitMq:
    kind = "rabbitmq"
    #: The default exchange, with the name of the queue.
    target = "/events"
    queue = "events"

    def __init__(self, folder, name="rabbitmq"):
        self.name, self.port = name, free_port()
        home = os.path.join(folder, name)
        os.makedirs(home)
        for file, text in (("plugins", "[]."), ("conf", "disk_free_limit.absolute = 10MB\nlog.console = true\n")):
            with open(os.path.join(home, file), "w") as out:
                out.write(text)
        env = {"HOME": home, "ERL_EPMD_PORT": str(free_port()), "ERL_EPMD_ADDRESS": "127.0.0.1",
               "RABBITMQ_NODENAME": f"chaos{self.port}@localhost", "RABBITMQ_CONF_ENV_FILE": "/dev/null",
               "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(self.port),
               "RABBITMQ_DIST_PORT": str(free_port()), "RABBITMQ_CONFIG_FILE": f"{home}/conf",
               "RABBITMQ_CONF_FILE": f"{home}/conf", "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/plugins",
               "RABBITMQ_MNESIA_BASE": f"{home}/data", "RABBITMQ_LOG_BASE": f"{home}/log"}
        os.rename(f"{home}/conf", f"{home}/rabbitmq.conf")
        env["RABBITMQ_CONFIG_FILE"] = f"{home}/rabbitmq.conf"
        env.pop("RABBITMQ_CONF_FILE")
        self.env = {**os.environ, **env}
        self.names = Process(["epmd", "-address", "127.0.0.1"], f"{folder}/{name}.epmd.log", env=env)
        self.process = Process([f"{PROGRAMS}/rabbitmq-server"], f"{folder}/{name}.log", env=env)

    def create(self):
        self.names.start()
        self.start()
        with Amqp(self.port) as client:
            client.declare(self.queue)
        self.keep_the_queue()
        return self

    def keep_the_queue(self):
        """Has it written to disk now that there is a queue: killed in the first seconds, RabbitMQ forgets it, with all it has confirmed."""
        command = [f"{PROGRAMS}/rabbitmqctl", "--node", self.env["RABBITMQ_NODENAME"], "eval", "mnesia:dump_log()."]
        ended = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        if ended.returncode or "dumped" not in ended.stdout:
            raise ChaosError(f"RabbitMQ did not write its tables to disk: {ended.stdout}{ended.stderr}")

    def start(self):
        self.process.start()
        wait_until("RabbitMQ answers", self.answers, 90, 0.2)
        return self

    def answers(self):
        try:
            Amqp(self.port).close()
            return True
        except (OSError, ChaosError):
            return False

    def close(self):
        self.process.kill()
        self.names.kill()

    def section(self, extra=""):
        return f'[publisher.{self.name}]\nkind = "rabbitmq"\nurl = "amqp://127.0.0.1:{self.port}"\n{extra}\n'

    def consume(self):
        with Amqp(self.port) as client:
            return client.drain(self.queue)


class Amqp:
    """A connection with one channel."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b"AMQP\0\0\x09\x01")
        self.expect(10, 10)
        self.send(0, 10, 11, struct.pack("!I", 0) + short("PLAIN") + long(b"\0guest\0guest") + short("en_US"))
        self.expect(10, 30)
        self.send(0, 10, 31, struct.pack("!HIH", 10, 131072, 0))
        self.send(0, 10, 40, short("/") + b"\0\0")
        self.expect(10, 41)
        self.send(1, 20, 10, b"\0")
        self.expect(20, 11)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, channel, class_, method, arguments):
        payload = struct.pack("!HH", class_, method) + arguments
        self.socket.sendall(struct.pack("!BHI", 1, channel, len(payload)) + payload + FRAME_END)

    def frame(self):
        head = self.file.read(7)
        if len(head) < 7:
            raise ChaosError("RabbitMQ has closed the connection")
        kind, _, size = struct.unpack("!BHI", head)
        payload = self.file.read(size + 1)
        return kind, payload[:-1]

    def expect(self, class_, *methods):
        """The arguments of the next method, which is one of these."""
        while True:
            kind, payload = self.frame()
            if kind != 1:
                continue
            found = struct.unpack("!HH", payload[:4])
            if found[0] == class_ and found[1] in methods:
                return found[1], payload[4:]
            raise ChaosError(f"RabbitMQ says {found}: {payload[4:200]!r}")

    def declare(self, queue):
        self.send(1, 50, 10, b"\0\0" + short(queue) + b"\x02" + struct.pack("!I", 0))
        self.expect(50, 11)

    def drain(self, queue):
        """The events of all messages of a queue, in its order."""
        found = []
        while True:
            for _ in range(AT_ONCE):
                self.send(1, 60, 70, b"\0\0" + short(queue) + b"\x01")
            answers = [self.got() for _ in range(AT_ONCE)]
            found += filter(None, answers)
            if None in answers:
                return found

    def got(self):
        """The event that a request brings, or None if the queue is empty."""
        method, _ = self.expect(60, 71, 72)
        if method == 72:
            return None
        kind, header = self.frame()
        size, body = struct.unpack("!Q", header[4:12])[0], b""
        while len(body) < size:
            body += self.frame()[1]
        return Received(message_id(header), text_header(header, "event-key"), digest(body))


def short(text):
    return struct.pack("!B", len(text)) + text.encode()


def long(data):
    return struct.pack("!I", len(data)) + data


def message_id(header):
    """The property of that name in a content header."""
    flags, place = struct.unpack("!H", header[12:14])[0], 14
    # In the order of their bits: content type, encoding, headers, delivery mode, priority, correlation id, reply to,
    # expiration, message id.
    for bit in range(15, 6, -1):
        if not flags & (1 << bit):
            continue
        if bit == 13:
            place += 4 + struct.unpack("!I", header[place:place + 4])[0]
        elif bit in (12, 11):
            place += 1
        else:
            size = header[place]
            value = header[place + 1:place + 1 + size]
            place += 1 + size
            if bit == 7:
                return value.decode()
    raise ChaosError("a message without an id")


def text_header(header, name):
    """A text among the headers of a message, or an empty one. Only the program under test has written them."""
    start = short(name) + b"S"
    _, found, rest = header.partition(start)
    if not found:
        return ""
    size = struct.unpack("!I", rest[:4])[0]
    return rest[4:4 + size].decode()
