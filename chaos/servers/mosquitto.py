"""Private Mosquitto brokers, and a subscriber whose session outlasts them."""

import socket
import subprocess

from chaos.events import Received, digest
from chaos.processes import Process, free_port, give_to_owner, wait_until


class Mosquitto:
    """A broker that keeps what it has acknowledged only across a clean stop; `docs/brokers/mqtt.md` says so."""

    kind = "mqtt"
    target = "events"

    def __init__(self, folder, name="mqtt"):
        self.name, self.port = name, free_port()
        self.record, settings = f"{folder}/{name}.ids", f"{folder}/{name}.conf"
        with open(settings, "w") as file:
            file.write(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 1000000\n"
                       f"max_inflight_messages 200\npersistence true\npersistence_location {folder}/{name}-data/\n")
        subprocess.run(["mkdir", "-p", f"{folder}/{name}-data"], check=True)
        open(f"{folder}/{name}.log", "w").close()
        give_to_owner(f"{folder}/{name}-data")
        self.process = Process(["/usr/sbin/mosquitto", "-c", settings], f"{folder}/{name}.log", owned=True)
        # One line for each message: its payload in hex, and its user properties, such as the event's id. The session outlasts
        # connections.
        self.subscriber = Process(
            ["mosquitto_sub", "-V", "5", "-h", "127.0.0.1", "-p", self.port, "-q", "1", "-c", "-i", "checker", "-x", "3600",
             "-t", self.target, "-F", "%x %P"], self.record)

    def create(self):
        self.start()
        self.subscriber.start()
        wait_until("the subscriber is there", self.has_subscriber, 20)
        return self

    def start(self):
        self.process.start()
        wait_until("Mosquitto listens", self.listens, 30)
        return self

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def has_subscriber(self):
        with open(self.process.log) as log:
            return "checker" in log.read()

    def close(self):
        self.subscriber.kill()
        self.process.kill()

    def section(self, extra=""):
        return f'[publisher.{self.name}]\nkind = "mqtt"\nurl = "mqtt://127.0.0.1:{self.port}"\n{extra}\n'

    def consume(self):
        """Ends the subscriber, which writes out what it holds, and reads what it has received."""
        self.subscriber.end(2, 10)
        found = []
        with open(self.record, errors="replace") as record:
            for line in record:
                body, *properties = line.split()
                words = dict(part.split(":", 1) for part in properties if ":" in part)
                if "event-id" in words:
                    found.append(Received(words["event-id"], words.get("event-key", ""), digest(bytes.fromhex(body))))
        return found
