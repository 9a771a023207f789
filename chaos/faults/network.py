"""Faults of the network between relays and database, made by a proxy; the writers have connections of their own."""

import contextlib
import time

from chaos.faults.fault import TAKEOVER, Fault

RESENT = "lines that were written and could not be recorded in time"
#: Seconds after the end of a lease in which a line that was under way may still arrive.
LATE = 1.5


class Network(Fault):
    def arrange(self, world):
        super().arrange(world)
        self.proxy = world.proxied()

    def disturb(self, world, command, seconds):
        with self.disturbed(self.proxy, command):
            began = time.monotonic()
            world.pause(seconds)
            ended = time.monotonic()
        if command in ("cut", "stall", "one-way"):
            late = sum(began + self.lease + LATE < arrival.at < ended for arrival in world.arrivals.all)
            if late:
                self.doubts.append(f"{late} events were delivered after the end of all leases, while nothing flowed ({command})")
        world.wait_for_arrivals()

    @contextlib.contextmanager
    def disturbed(self, proxy, command):
        """The time in which a proxy obeys a command, which has to meet somebody."""
        before = proxy.tell(command)
        yield
        after = proxy.tell("pass")
        if not before.open:
            self.doubts.append(f"no connection led through the proxy ({command})")
        if command == "cut" and after.refused == before.refused:
            self.doubts.append("no connection was refused (cut)")
        if command != "cut" and after.held == before.held:
            self.doubts.append(f"nothing had to wait at the proxy ({command})")


class CutConnection(Network):
    name = "cut-connection"
    summary = "connections to the database are reset and refused, for 1 s and for longer than a lease"
    duplicates = RESENT

    def strike(self, world):
        self.disturb(world, "cut", 1)
        self.disturb(world, "cut", self.lease * 2)


class OneWayCut(Network):
    name = "one-way-cut"
    summary = "what the database answers does not arrive, for longer than a lease; then it does"
    duplicates = RESENT

    def strike(self, world):
        self.disturb(world, "one-way", self.lease * 2)


class StalledConnection(Network):
    name = "stall"
    summary = "connections stay and nothing flows in either direction, for longer than a lease"
    duplicates = RESENT

    def strike(self, world):
        self.disturb(world, "stall", self.lease * 2)


class StalledNode(Network):
    """Only the node that delivers is cut off; another one takes over, and the first one hears of it late."""

    name = "stall-one-node"
    summary = "the same for the delivering node alone, until the other one has taken over"
    duplicates = RESENT
    allowed_gap = TAKEOVER

    def arrange(self, world):
        super().arrange(world)
        self.proxies = {"node-1": self.proxy}
        first = world.relay_url
        self.proxies["node-2"] = world.proxied()
        self.urls = {"node-1": first, "node-2": world.relay_url}

    def node(self, world, name):
        world.relay_url = self.urls[name]
        return super().node(world, name)

    def strike(self, world):
        for command in ("stall", "one-way"):
            node = world.active_node()
            with self.disturbed(self.proxies[node.name], command):
                world.go_on_without(node, self.lease * 2)
            world.wait_for_arrivals()
            world.pause(1)


class Delay(Network):
    name = "delay-200-ms"
    summary = "every answer and every question takes 200 ms longer, for 8 s"
    duplicates = RESENT
    load = {"rate": 200}

    def strike(self, world):
        self.disturb(world, "delay 0.2", 8)


class SlowLinkUnderLoad(Network):
    """Large events under load over a slow link: some 1 MiB a second more than the link has to carry in a while."""

    name = "slow-link-1-mib"
    summary = "events of 1 MiB over a link of 80 Mbit/s, for 10 s"
    load = {"rate": 12, "rows": 2, "note": (1 << 20) - 64, "keys": 10}

    def wait_until_steady(self, world):
        world.wait_for_arrivals(10)

    def strike(self, world):
        with self.disturbed(self.proxy, "rate 10000000"):
            world.pause(10)


FAULTS = [CutConnection, OneWayCut, StalledConnection, StalledNode, Delay, SlowLinkUnderLoad]
