"""Cells with a course of their own: a bound on time or memory is measured, beside the usual verdict."""

import time

from chaos import relay
from chaos.checker import check
from chaos.course import ORDER, safely
from chaos.events import event, payload
from chaos.faults.fault import POSTGRES, Fault
from chaos.load import COLUMNS, Written
from chaos.processes import ChaosError, peak_memory, wait_until
from chaos.servers.nats import Nats
from chaos.servers.webhook import Webhook

CONFIRMED = "select count(*) from outbox_event where status = 1"
SHARED_MODES = ("single_node", "multi_node", "partitioned")


class SilentBroker(Fault):
    """Two routes of one source; the broker of one does not answer for 10 s, from the first event on."""

    EVENTS = 20_000
    SILENT = 10
    #: How much of that follows the commit at least, which takes its time on a busy machine: more than the bound may be.
    AFTER_COMMIT = 8
    alone = True
    modes = SHARED_MODES
    duplicates = "what was sent and not confirmed in time is sent again; NATS drops it by its id"
    keys = 10_000

    def course(self, world, result):
        world.create_database()
        world.migrate()
        well = world.keep(Nats(world.folder, "well").create())
        ill = world.keep(Nats(world.folder, "ill").create())
        node = self.start(world, well, ill)
        written = Written()
        self.pass_on(world, "warm", 2000, written)
        wait_until("the warm-up is through", lambda: world.database.pending() == 0, 60, 0.05)
        undisturbed = self.undisturbed(world, written)
        self.check_speed(undisturbed)
        disturbed = self.disturbed(world, ill, written)
        node.stop()
        bound = self.bound(undisturbed)
        result.figures = {"undisturbed_s": round(undisturbed, 2), "disturbed_s": round(disturbed, 2),
                          "bound_s": round(bound, 2)}
        if disturbed > bound:
            result.problems.append(f"the other route took {disturbed:.1f} s, more than {bound:.1f} s")
        result.problems += self.doubts
        arrived = well.consume() + ill.consume()
        world.save("arrivals.ids", (arrival.event_id for arrival in arrived))
        result.take(check(written, world.database.rows(), arrived, ORDER.get(world.cell.mode)))

    @staticmethod
    def bound(undisturbed):
        return 2 * undisturbed + 1

    def check_speed(self, undisturbed):
        """On a machine that is too slow a route that waits for the silent broker could be within the bound."""
        if undisturbed > self.SILENT / 3:
            raise ChaosError(f"the machine is too slow to tell, repeat the run: {undisturbed:.1f} s with both brokers well, "
                             f"{self.SILENT / 3:.1f} s at most")

    def start(self, world, well, ill):
        routes = "".join(f'[[route]]\nname = "{name}"\ntypes = ["{name}-*"]\npublisher = "{broker.name}"\n'
                         f'to = "{broker.target}"\n' for name, broker in (("order", well), ("stock", ill)))
        node = world.start_node(relay.configured_node(world, "node-1", well.section() + ill.section() + routes))
        node.wait_until_ready()
        return node

    def pass_on(self, world, round_, count, written):
        """Commits `count` events of either route in one transaction, in turn; the moment of the commit."""
        keys = {f"{route}-{round_}-{number}": f"{route}-{number % self.keys}"
                for number in range(count) for route in ("stock", "order")}
        ids, parts = list(keys), []
        for start in range(0, len(ids), 1000):
            values = ", ".join(f"('{id}', '{id.rpartition('-')[0]}', 'order', '{keys[id]}', '{payload(id)}')"
                               for id in ids[start:start + 1000])
            parts.append(f"insert into outbox_event ({COLUMNS}) values {values};")
        session = world.database.session()
        if session.run("begin;\n" + "\n".join(parts) + "\ncommit;", 120) is None:
            raise ChaosError("the backlog could not be written")
        session.close()
        written.committed.update({id: event(id, key) for id, key in keys.items()})
        return time.monotonic()

    def until_delivered(self, world, committed, seconds, condition):
        sql = f"select count(*) from outbox_event where status in (0, 2) and {condition}"
        wait_until("the other route is through", lambda: safely(lambda: world.database.query(sql)) == [["0"]], seconds, 0.05)
        return time.monotonic() - committed

    def undisturbed(self, world, written):
        committed = self.pass_on(world, "well", self.EVENTS, written)
        seconds = self.until_delivered(world, committed, 120, "event_type = 'order-well'")
        self.until_delivered(world, committed, 120, "1 = 1")
        world.say(f"undisturbed: {seconds:.2f} s")
        return seconds

    def disturbed(self, world, ill, written):
        ill.process.pause()
        silent = time.monotonic()
        committed = self.pass_on(world, "ill", self.EVENTS, written)
        over = max(silent + self.SILENT, committed + self.AFTER_COMMIT)
        try:
            seconds = self.until_delivered(world, committed, over - committed, "event_type = 'order-ill'")
        except ChaosError:
            seconds = None
            self.doubts.append("the other route was not through while its neighbour was silent")
        world.pause(max(0.0, over - time.monotonic()))
        if safely(lambda: world.database.query(f"{CONFIRMED} and event_type = 'stock-ill'")) != [["0"]]:
            self.doubts.append("the silent broker has confirmed events")
        ill.process.resume()
        if seconds is None:
            seconds = self.until_delivered(world, committed, 120, "event_type = 'order-ill'")
        world.say(f"beside a silent broker: {seconds:.2f} s")
        self.until_delivered(world, committed, 120, "1 = 1")
        return seconds


class SilentBrokerManyKeys(SilentBroker):
    name = "silent-broker-10000-keys"
    summary = "one of two brokers silent for 10 s, 10,000 keys a route: the other route takes at most twice its time plus 1 s"


class SilentBrokerFewKeys(SilentBroker):
    name = "silent-broker-100-keys"
    summary = "the same with 100 keys a route"
    keys = 100


class BrokerSilentForLonger(SilentBrokerFewKeys):
    """Longer than the publisher's timeout: the silent route is paused, with events under way and more of their keys read."""

    name = "silent-broker-15-s"
    summary = "the same for 15 s, which is longer than the publisher's timeout: the silent route is paused"
    SILENT = 15
    AFTER_COMMIT = 13

    def disturbed(self, world, ill, written):
        seconds = super().disturbed(world, ill, written)
        if "a route is paused" not in world.nodes[0].said():
            raise ChaosError("the silent route was not paused")
        return seconds


class SilentBrokerBesideAnOpenTransaction(SilentBrokerFewKeys):
    """A writer has inserted an event and does not commit: nothing above it is proven to be complete."""

    name = "silent-broker-open-transaction"
    summary = "the same with 100 keys, while a transaction that has written an event stays open"
    stores = POSTGRES

    def disturbed(self, world, ill, written):
        writer = world.database.session()
        world.stack.callback(writer.close)
        writer.run(f"begin; insert into outbox_event ({COLUMNS}) values ('open', 'order-open', 'order', 'open',"
                   f" '{payload('open')}');")
        written.unknown["open"] = event("open", "open")
        world.pause(1)
        seconds = super().disturbed(world, ill, written)
        writer.close()
        return seconds


class LargePayloads(Fault):
    """Events of 500 kB towards an endpoint that takes its time."""

    name = "large-payloads"
    summary = "3,000 events of 500 kB to a webhook endpoint that takes 200 ms each: at most 256 MiB of memory"
    modes = SHARED_MODES
    EVENTS = 3000
    SIZE = 500_000
    LIMIT = 256
    PATIENCE = 400

    def address(self, world):
        """The URL at which the relay finds the database."""

    def course(self, world, result):
        world.create_database()
        world.migrate()
        self.address(world)
        endpoint = world.keep(Webhook(world.folder, seconds=0.2).create())
        written = Written(committed=self.write(world))
        route = f'[[route]]\nname = "all"\npublisher = "{endpoint.name}"\nto = "{endpoint.target}"\n'
        node = world.start_node(relay.configured_node(world, "node-1", endpoint.section() + route))
        began = time.monotonic()
        try:
            wait_until("all is delivered", lambda: safely(lambda: world.database.pending() == 0), self.PATIENCE, 0.5)
        except ChaosError as error:
            result.problems.append(str(error))
        peak = peak_memory(node.pid)
        result.figures = {"peak_mib": round(peak), "delivered_s": round(time.monotonic() - began, 1)}
        if peak >= self.LIMIT:
            result.problems.append(f"the relay held {peak:.0f} MiB at its peak, {self.LIMIT} are allowed")
        node.stop()
        verdict = check(written, world.database.rows(), endpoint.consume(), ORDER.get(world.cell.mode))
        result.take(verdict)
        if reason := self.evidence(world, verdict):
            result.problems.append(f"the fault may not have struck: {reason}")

    def write(self, world):
        keys = {f"large-{number}": f"key-{number % 100}" for number in range(self.EVENTS)}
        ids, session = list(keys), world.database.session()
        for start in range(0, len(ids), 20):
            values = ", ".join(f"('{id}', 'large', 'order', '{keys[id]}', {self.body(id)}{self.cast(world)})"
                               for id in ids[start:start + 20])
            if session.run(f"insert into outbox_event ({COLUMNS}) values {values};", 60) is None:
                raise ChaosError("the events could not be written")
        session.close()
        return {id: event(id, key, self.SIZE) for id, key in keys.items()}

    def body(self, id):
        """The payload as an expression: the database makes it, so that the statement is short."""
        begin, end = payload(id, 1).split("x")
        return f"concat('{begin}', repeat('x', {self.SIZE}), '{end}')"

    def cast(self, world):
        return "::json" if world.cell.store.startswith("postgres") else ""


class SlowLink(LargePayloads):
    name = "slow-link"
    summary = "1,200 events of 500 kB over a link of 80 Mbit/s to the database: all arrive"
    EVENTS = 1200

    def address(self, world):
        self.proxy = world.proxied()
        self.proxy.tell("rate 10000000")

    def evidence(self, world, verdict):
        if not self.proxy.tell("pass").held:
            self.doubts.append("nothing had to wait at the proxy")
        return super().evidence(world, verdict)


FAULTS = [SilentBrokerManyKeys, SilentBrokerFewKeys, BrokerSilentForLonger, SilentBrokerBesideAnOpenTransaction,
          LargePayloads, SlowLink]
