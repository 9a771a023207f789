"""The surroundings of one run: its folder, its servers, its relays, its load, and the end of all of them."""

import contextlib
import os
import shutil
import sys
import tempfile
import time

from chaos import relay
from chaos.arrivals import Arrivals
from chaos.load import Load
from chaos.processes import ChaosError, free_port, is_root, wait_until
from chaos.proxy import Proxy
from chaos.servers.mariadb import MariaDb
from chaos.servers.postgres import Postgres
from chaos.servers.sqlite import Sqlite


class World:
    """Everything that a run makes is registered here and removed by `close`, in reverse order."""

    #: Events after the loss of a node, of which some must be its own.
    SHARE = 100

    def __init__(self, cell, fault, *, rate=500):
        self.cell, self.fault, self.rate = cell, fault, rate
        self.stack = contextlib.ExitStack()
        self.folder = tempfile.mkdtemp(prefix="pillarbox-chaos.")
        os.chmod(self.folder, 0o755)
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.record_path = self.path("arrivals.jsonl")
        self.database = self.load = self.arrivals = self.broker = None
        self.relay_url = None
        #: Transactions of the load that failed before the fault.
        self.earlier_errors = 0
        self.nodes = []
        self.notes = []
        self.began = time.monotonic()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def save(self, name, lines):
        """Writes a record into the folder, which is kept if the run fails."""
        with open(self.path(name), "w") as file:
            file.writelines(f"{line}\n" for line in lines)

    def close(self):
        self.stack.close()

    def say(self, text):
        if os.environ.get("CHAOS_VERBOSE"):
            print(f"    {time.monotonic() - self.began:6.1f} s  {text}", file=sys.stderr, flush=True)

    def keep(self, thing):
        """Registers something that has `close`."""
        self.stack.callback(thing.close)
        return thing

    def create_database(self, *, settings="", env=None, preload=None):
        """Starts the cell's database, with its tables."""
        self.database = self.new_database(settings, env, preload)
        self.keep(self.database)
        self.database.create().started()
        if self.cell.store == "mariadb":
            self.database.create_shop()
        return self.database

    def new_database(self, settings, env, preload):
        folder = self.fault.database_folder(self)
        if self.cell.store == "sqlite":
            return Sqlite(folder)
        if self.cell.store == "mariadb":
            return MariaDb(folder, settings=[settings] if settings else [], env=env, preload=preload)
        return Postgres(folder, self.cell.store.removeprefix("postgres"), settings=settings, env=env, preload=preload)

    def migrate(self):
        relay.migrate(relay.program(), self.database.url())

    def url(self):
        return self.relay_url or self.database.url()

    def proxied(self, port=None):
        """Puts a proxy between relays and database."""
        proxy = self.keep(Proxy(free_port(), port or self.database.port))
        self.relay_url = self.database.url(port=proxy.port)
        return proxy

    def start_node(self, node=None):
        """Starts a relay, or one more."""
        node = node or self.fault.node(self, f"node-{len(self.nodes) + 1}")
        node.start()
        self.stack.callback(node.kill)
        self.nodes.append(node)
        self.say(f"{node.name} started")
        return node

    def active_node(self):
        """The node that wrote the last line."""
        last = self.arrivals.all[-1:]
        return next((node for node in reversed(self.nodes) if node.is_alive() and last and last[0].is_from(node)),
                    next(node for node in self.nodes if node.is_alive()))

    def watch(self):
        self.arrivals = Arrivals(self.record_path).start()
        self.stack.callback(self.arrivals.stop)

    def begin_load(self, **options):
        rate, writers = (self.fault.ordered_rate, 1) if self.cell.mode == "ordered" else (self.rate, None)
        self.load = Load(self.database, **{"rate": rate, "writers": writers, **options})
        self.stack.callback(self.end_load)
        self.load.start()

    def end_load(self):
        if self.load is not None:
            self.load.stop()

    def wait_for_arrivals(self, more=100, seconds=60):
        """Waits until so many more events have arrived."""
        wanted = self.arrivals.count() + more
        wait_until(f"{more} more arrivals", lambda: self.arrivals.count() >= wanted or self.check_nodes(), seconds)

    def go_on_without(self, victim, seconds):
        """Lets the run go on for a while without a node that delivered, and then until the others have delivered its share."""
        away = time.monotonic()
        before = self.database.highest()
        wait_until("events are written", lambda: self.database.highest() >= before + self.SHARE, 60, 0.1)
        highest = self.database.highest()
        self.pause(max(0.0, away + seconds - time.monotonic()))
        alone = time.monotonic()
        wait_until(f"the others deliver the share of {victim.name}",
                   lambda: self.check_nodes() or self.database.pending(highest) == 0, self.fault.recovery, 0.1)
        self.wait_for_arrivals()
        self.say(f"the others have delivered the share of {victim.name} after {time.monotonic() - away:.1f} s")
        if any(arrival.at > alone and arrival.is_from(victim) for arrival in self.arrivals.all):
            raise ChaosError(f"{victim.name} delivered events while it was away")

    def check_nodes(self):
        """A relay that ends by itself is an error at once, unless the fault expects it."""
        for node in self.nodes:
            if node.child.poll() not in (None, 0, -9, -15) and not self.fault.nodes_may_end:
                raise ChaosError(f"{node.name} ended with {node.child.poll()}: {node.said(5)}")
        return False

    def pause(self, seconds):
        """Lets the run go on for a while."""
        time.sleep(seconds)

    def stop_nodes(self):
        for node in self.nodes:
            if node.is_alive():
                node.stop()


def need_root(what):
    return None if is_root() else f"{what} needs root"
