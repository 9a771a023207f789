"""Upgrades: a migration under load, and two releases side by side."""

import os
import re
import subprocess
import time

from chaos import relay
from chaos.faults.fault import ALL_STORES, Fault
from chaos.load import insert_backlog
from chaos.processes import ChaosError, wait_until

#: The version of the tables from which a migration starts, and the rows that they hold then.
OLD_VERSION = 3
BACKLOG = 20_000


class MigrationUnderLoad(Fault):
    """Tables of an older version are migrated while events are written; then relays begin."""

    name = "migrate-under-load"
    summary = f"tables of version {OLD_VERSION} with {BACKLOG:,} events are migrated under writers; then relays start"
    stores = ALL_STORES
    nodes = 0
    recovery = 120

    def arrange(self, world):
        world.create_database()
        printed = subprocess.run([relay.program(), "migrate", "--print", "--store", world.database.url()],
                                 capture_output=True, text=True, timeout=30, check=True).stdout
        # A version ends with the record of it.
        end = re.search(rf"^.*outbox_migration.*VALUES \({OLD_VERSION}\b.*;\n", printed, re.MULTILINE)
        if not end:
            raise ChaosError("the printed migration does not say where versions end")
        world.database.run_script(printed[:end.end()])
        self.backlog = insert_backlog(world.database, "backlog", BACKLOG, 200)

    def wait_until_steady(self, world):
        world.load.written.committed.update(self.backlog)
        wait_until("events are written", lambda: world.load.count() > BACKLOG + 500, 30)
        world.load.longest = 0.0

    def strike(self, world):
        began = time.monotonic()
        world.migrate()
        self.took = time.monotonic() - began
        world.say(f"migrated in {self.took:.1f} s")
        self.longest = world.load.longest
        for _ in range(2):
            world.start_node()
        world.wait_for_arrivals()

    def figures(self, world):
        return {"migration_s": round(self.took, 1), "longest_write_s": round(self.longest, 2)}


class TwoReleases(Fault):
    """A rolling upgrade and its rollback: nodes of the release before and of this one replace each other."""

    name = "two-releases"
    summary = ("nodes of the release OLD and of this one on one table: migrated beside the old node, which is killed, restarted and "
               "delivers alone once more; then the new one takes over")
    stores = ALL_STORES
    duplicates = "lines that were written and not recorded when the node was killed"
    lines_may_break = True
    nodes = 0

    def unavailable(self):
        return None if os.environ.get("OLD") else "OLD=PROGRAM names no other release"

    def arrange(self, world):
        world.create_database()
        relay.migrate(relay.program("OLD"), world.database.url())
        self.tables_before = tables_version(world)

    def wait_until_steady(self, world):
        self.old = self.start(world, "OLD")
        super().wait_until_steady(world)

    def strike(self, world):
        world.migrate()
        self.wait_until_delivered(world, "the old node delivers on migrated tables")
        new = self.start(world, "PILLARBOX")
        self.wait_until_delivered(world, "both nodes deliver")
        self.old.kill()
        self.wait_until_delivered(world, "the new node delivers alone")
        self.old = self.start(world, "OLD")
        self.wait_until_delivered(world, "both nodes deliver after a restart of the old one")
        new.kill()
        self.wait_until_delivered(world, "the old node delivers alone after the rollback")
        self.start(world, "PILLARBOX")
        self.old.stop()
        self.wait_until_delivered(world, "the new node delivers alone after the upgrade")

    def start(self, world, variable):
        name = f"{'old' if variable == 'OLD' else 'new'}-{len(world.nodes) + 1}"
        return world.start_node(relay.lines_node(world, name, binary=relay.program(variable)))

    def wait_until_delivered(self, world, what):
        """Waits until all that is written now is delivered, and some of what is written later."""
        highest = world.database.highest()
        wait_until(what, lambda: world.check_nodes() or world.database.pending(highest) == 0, self.recovery, 0.1)
        world.wait_for_arrivals(50)
        world.say(what)

    def figures(self, world):
        return {"tables": f"{self.tables_before} to {tables_version(world)}"}


def tables_version(world):
    return int(world.database.query("select max(version) from outbox_migration")[0][0])


FAULTS = [MigrationUnderLoad, TwoReleases]
