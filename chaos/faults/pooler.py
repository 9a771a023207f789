"""PgBouncer between relays and PostgreSQL."""

import signal
import socket

from chaos.faults.fault import POSTGRES, Fault
from chaos.processes import Process, free_port, give_to_owner, wait_until

SETTINGS = """[databases]
postgres = host=127.0.0.1 port={database} dbname=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 100
"""


class RestartedPooler(Fault):
    name = "restart-pgbouncer"
    summary = "PgBouncer in transaction mode is stopped for 2 s, and killed"
    stores = POSTGRES
    duplicates = "lines that were written and could not be recorded"

    def arrange(self, world):
        super().arrange(world)
        self.port, file = free_port(), world.path("pgbouncer.ini")
        text = SETTINGS.format(database=world.database.port, port=self.port)
        with open(file, "w") as out:
            out.write(text.replace("postgres = host", "postgres = user=postgres host"))
        log = world.path("pgbouncer.log")
        open(log, "w").close()
        give_to_owner(file)
        self.process = Process(["pgbouncer", file], log, owned=True)
        self.process.env["PATH"] += ":/usr/sbin"
        self.start()
        world.stack.callback(lambda: self.process.kill())
        world.relay_url = world.database.url(port=self.port, parameters="?pgbouncer=true")

    def evidence(self, world, verdict):
        if "login attempt" not in self.process.said(10_000):
            self.doubts.append("nobody has used PgBouncer")
        return super().evidence(world, verdict)

    def start(self):
        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        self.process.start()
        wait_until("PgBouncer listens", listens, 20)

    def strike(self, world):
        self.process.end(signal.SIGTERM, 10)
        world.pause(2)
        self.start()
        world.wait_for_arrivals()
        self.process.kill()
        world.say("PgBouncer killed")
        self.start()
        world.wait_for_arrivals()


FAULTS = [RestartedPooler]
