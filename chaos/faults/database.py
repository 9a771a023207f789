"""Faults of the database server: killed, restarted, without space, without connections, with an old snapshot."""

import errno
import os
import socket
import struct
import subprocess

from chaos.faults.fault import ALL_STORES, POSTGRES, SERVERS, Fault
from chaos.processes import ChaosError, give_to_owner
from chaos.world import need_root

RESENT = "lines that were written and could not be recorded"


class KillDatabase(Fault):
    name = "kill-database"
    summary = "kill -9 of all processes of the server, which is started again a second later; twice"
    duplicates = RESENT
    writers_fail = True

    def strike(self, world):
        for _ in range(2):
            world.database.kill()
            world.say("database killed")
            world.pause(1)
            world.database.started()
            world.wait_for_arrivals()


class RestartDatabase(Fault):
    name = "restart-database"
    summary = "a clean stop of the server that lasts for longer than a lease, and a quick restart"
    duplicates = RESENT
    writers_fail = True

    def strike(self, world):
        for seconds in (self.lease + 1, 0):
            world.database.stop()
            world.say("database stopped")
            world.pause(seconds)
            world.database.started()
            world.wait_for_arrivals()


class FullDisk(Fault):
    name = "full-disk"
    summary = "no space is left on the disk of the database for 6 s"
    stores = ALL_STORES
    duplicates = RESENT
    writers_fail = lines_may_break = True
    SIZE = 400

    def unavailable(self):
        return need_root("a file system of its own for the database")

    def database_folder(self, world):
        self.disk = world.path("disk")
        os.makedirs(self.disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.SIZE}m,mode=755", "tmpfs", self.disk], check=True)
        world.stack.callback(subprocess.run, ["umount", "--lazy", self.disk], check=False)
        give_to_owner(self.disk)
        return os.path.join(self.disk, "database")

    def strike(self, world):
        ballast = os.path.join(self.disk, "ballast")
        with open(ballast, "wb", buffering=0) as file:
            self.fill(file)
            for _ in range(12):
                world.pause(0.5)
                self.fill(file)
        world.say("the disk was full")
        os.unlink(ballast)
        world.database.revive()
        world.wait_for_arrivals()

    @staticmethod
    def fill(file):
        """Writes until there is no space left, which is the only error that ends it."""
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


class NoConnections(Fault):
    """Strangers take every connection that the server allows; the relays' own are ended, and cannot be opened again."""

    name = "no-connections"
    summary = "max_connections taken by others for 6 s, after the relays' connections were ended"
    stores = POSTGRES
    duplicates = RESENT
    LIMIT = 60

    def strike(self, world):
        admin, strangers = world.database.session(), []
        try:
            for attempt in range(24):
                admin.run(world.database.end_clients())
                while stranger := connect(world.database.port):
                    strangers.append(stranger)
                world.pause(0.25)
            world.say(f"{len(strangers)} strangers hold connections")
            if len(strangers) < self.LIMIT // 2:
                raise ChaosError(f"only {len(strangers)} connections could be taken")
        finally:
            for stranger in strangers:
                stranger.close()
            admin.close()
        world.wait_for_arrivals()


def connect(port):
    """A session of PostgreSQL that does nothing, or None if the server takes no more."""
    stranger = socket.create_connection(("127.0.0.1", port), timeout=5)
    body = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0application_name\0stranger\0\0"
    stranger.sendall(struct.pack("!I", len(body) + 4) + body)
    if stranger.recv(1) == b"R":
        return stranger
    stranger.close()
    return None


class HeldSnapshot(Fault):
    name = "held-snapshot"
    summary = "a transaction with an old snapshot is open for the whole run"
    stores = ALL_STORES
    SECONDS = 15

    def wait_until_steady(self, world):
        super().wait_until_steady(world)
        self.holder = world.database.hold_snapshot()
        world.stack.callback(self.holder.close)
        self.seen = self.look()

    def look(self):
        """The number of rows that the snapshot shows."""
        return self.holder.run("select count(*) from outbox_event;")

    def strike(self, world):
        world.pause(self.SECONDS)
        seen = self.look()
        if not seen or seen != self.seen:
            self.doubts.append(f"the snapshot showed {self.seen} rows, and then {seen}")


FAULTS = [KillDatabase, RestartDatabase, FullDisk, NoConnections, HeldSnapshot]
