"""The faults of a soak, drawn from a seed: one at a time, with a pause between them."""

import time
from dataclasses import asdict, dataclass

from chaos.course import safely

#: Each with what explains events that arrive twice; the snapshot does not.
KINDS = ("kill-node", "pause-node", "restart-database", "kill-database", "cut", "stall", "stall-one-node",
         "one-way-cut", "held-snapshot")
HARMLESS = ("held-snapshot",)
SNAPSHOT = 60


@dataclass
class Event:
    """A fault, in seconds from the beginning of the run."""

    kind: str
    began: float
    ended: float = 0.0
    about: str = ""

    as_dict = asdict


def drawn(random_):
    """The kinds for ever: all of them in a random order, and again.

    >>> import random
    >>> kinds = drawn(random.Random(1))
    >>> sorted(next(kinds) for _ in KINDS) == sorted(KINDS)
    True
    """
    while True:
        yield from random_.sample(KINDS, len(KINDS))


class Faults:
    """Strikes until a moment. `fleet` has the nodes and the proxies, each node behind its own."""

    def __init__(self, world, fleet, random_, clock, lease, gap):
        self.world, self.fleet, self.random, self.clock, self.lease, self.gap = world, fleet, random_, clock, lease, gap
        self.kinds = drawn(random_)
        self.log = []

    def run(self, until):
        while (gap := self.random.uniform(*self.gap)) < until - self.clock():
            self.rest(gap)
            self.strike(next(self.kinds))
        self.rest(until - self.clock())

    def rest(self, seconds):
        """A pause, in which a relay that ends by itself ends the run."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.world.check_nodes()
            self.fleet.check()
            self.world.pause(max(0.0, min(1.0, until - time.monotonic())))

    def strike(self, kind):
        event = Event(kind, self.clock())
        self.log.append(event)
        self.world.say(f"strikes: {kind}")
        event.about = getattr(self, kind.replace("-", "_"))() or ""
        event.ended = self.clock()
        self.world.say(f"over: {kind} {event.about}")

    def kill_node(self):
        """The first node is spared, so that one process lives through the whole run."""
        slot = self.random.randrange(1, len(self.fleet.slots))
        node = self.fleet.slots[slot]
        node.kill()
        self.rest(self.random.uniform(1, 2) * self.lease)
        return f"{node.name}, then {self.fleet.start(slot).name}"

    def pause_node(self):
        node = self.random.choice(self.fleet.slots)
        node.pause()
        self.world.pause(self.lease * 2)
        node.resume()
        return node.name

    def restart_database(self):
        seconds = self.random.uniform(0, 2 * self.lease)
        self.world.database.stop()
        self.world.pause(seconds)
        self.world.database.started()
        return f"{seconds:.1f} s"

    def kill_database(self):
        self.world.database.kill()
        self.world.pause(1)
        self.world.database.started()

    def cut(self):
        return self.disturb("cut", self.random.uniform(1, 2 * self.lease), self.fleet.proxies)

    def stall(self):
        return self.disturb("stall", 2 * self.lease, self.fleet.proxies)

    def stall_one_node(self):
        return self.disturb("stall", 2 * self.lease, [self.random.choice(self.fleet.proxies)])

    def one_way_cut(self):
        return self.disturb("one-way", 2 * self.lease, [self.random.choice(self.fleet.proxies)])

    def disturb(self, command, seconds, proxies):
        for proxy in proxies:
            proxy.tell(command)
        self.world.pause(seconds)
        for proxy in proxies:
            proxy.tell("pass")
        return f"{seconds:.1f} s"

    def held_snapshot(self):
        holder = self.world.database.hold_snapshot()
        self.rest(SNAPSHOT)
        safely(holder.close)


def attribute(repeated, log, grace):
    """Counts repeated arrivals by the fault between the first arrival and this one; those without one under ''.

    >>> log = [Event("kill-node", 10, 12), Event("stall", 60, 70), Event("held-snapshot", 100, 160)]
    >>> attribute([(1, 9, 14), (2, 58, 75), (3, 61, 71), (4, 30, 40), (5, 101, 120)], log, 5)
    {'kill-node': 1, 'stall': 2, '': 2}
    """
    found = {}
    for _, first, again in repeated:
        kinds = [event.kind for event in log
                 if event.kind not in HARMLESS and event.began <= again and first <= event.ended + grace]
        kind = kinds[-1] if kinds else ""
        found[kind] = found.get(kind, 0) + 1
    return found
