"""Faults of brokers: killed, silent, refusing, confirming a part."""

from chaos import relay
from chaos.faults.fault import Fault
from chaos.processes import wait_until
from chaos.servers.mosquitto import Mosquitto
from chaos.servers.nats import Nats
from chaos.servers.rabbitmq import RabbitMq
from chaos.servers.redis import Redis
from chaos.servers.webhook import Webhook

#: What recovery takes: the longest pause of a route, two seconds here, and some.
ROUTE = """[[route]]
name = "all"
publisher = "{name}"
to = "{target}"
[route.breaker]
max_pause = "2s"
"""
TIMEOUT = 'timeout = "3s"'
RESENT = "what was sent and not confirmed is sent again"


class Broker(Fault):
    stores = ("postgres15",)
    broker = None
    duplicates = RESENT
    nodes = 1
    #: RabbitMQ confirms an event after some 10 ms, and the next one is sent only then.
    ordered_rate = 50

    def arrange(self, world):
        super().arrange(world)
        world.broker = world.keep(self.broker(world.folder))
        world.broker.create()

    def node(self, world, name):
        broker = world.broker
        sections = broker.section(TIMEOUT) + ROUTE.format(name=broker.name, target=broker.target)
        return relay.configured_node(world, name, sections, "ownership.lease = \"3s\"")

    def wait_until_steady(self, world):
        self.wait_for_deliveries(world, 300)

    def wait_for_deliveries(self, world, more):
        wanted = self.delivered(world) + more
        wait_until(f"{more} more deliveries", lambda: self.delivered(world) >= wanted, 60, 0.2)

    def delivered(self, world):
        return int(world.database.query("select count(*) from outbox_event where status = 1")[0][0])

    def go_on_without(self, world, seconds):
        """Lets the run go on without the broker. In the last quarter of this time nothing may be delivered any more."""
        world.pause(seconds * 3 / 4)
        before = self.delivered(world)
        world.pause(seconds / 4)
        if more := self.delivered(world) - before:
            self.doubts.append(f"{more} events were delivered while the broker was away")

    def arrivals(self, world):
        return world.broker.consume()


class KilledBroker(Broker):
    summary = "kill -9 of the broker, which is started again 2 s later"

    def strike(self, world):
        world.broker.process.kill()
        self.go_on_without(world, 2)
        world.broker.start()
        self.wait_for_deliveries(world, 100)


class RestartedBroker(Broker):
    summary = "a clean stop of the broker, which is started again 2 s later"

    def strike(self, world):
        world.broker.process.end(15, 30)
        self.go_on_without(world, 2)
        world.broker.start()
        self.wait_for_deliveries(world, 100)


class SilentBroker(Broker):
    summary = "SIGSTOP of the broker for twice the publisher's timeout"

    def strike(self, world):
        world.broker.process.pause()
        self.go_on_without(world, 6)
        world.broker.process.resume()
        self.wait_for_deliveries(world, 100)


class RefusingBroker(Broker):
    """Nobody listens where the broker was, when the relay starts and later."""

    summary = "nobody listens at the broker's address, from the relay's start on for 5 s, and again later"

    def arrange(self, world):
        super().arrange(world)
        world.broker.process.end(15, 30)

    def wait_until_steady(self, world):
        self.go_on_without(world, 5)
        world.broker.start()
        super().wait_until_steady(world)

    def strike(self, world):
        world.broker.process.end(15, 30)
        self.go_on_without(world, 3)
        world.broker.start()
        self.wait_for_deliveries(world, 100)


class HalfConfirmingBroker(Broker):
    """Of the events of a batch some are taken, and their confirmation never arrives.

    Not in mode `ordered`, where each of them pauses all that follows: the load would be too much for it.
    """

    name = "half-confirm-webhook"
    summary = "every fifth request is taken and its connection cut in place of an answer"
    modes = ("single_node", "multi_node", "partitioned")
    recovery = 120
    load = {"rate": 100}

    def broker(self, folder):
        return Webhook(folder, silent=5)

    def strike(self, world):
        world.pause(5)

    def evidence(self, world, verdict):
        if not verdict.duplicates:
            self.doubts.append("no event was sent again")
        return super().evidence(world, verdict)


def of(base, verb, broker, **more):
    """A fault of one kind of broker."""
    name = f"{verb}-{broker.kind}"
    return type(f"{base.__name__}{broker.__name__}", (base,),
                {"name": name, "broker": broker, "summary": base.summary, **more})


FAULTS = [
    of(KilledBroker, "kill", Nats), of(KilledBroker, "kill", Redis), of(KilledBroker, "kill", RabbitMq),
    # Mosquitto forgets what it has acknowledged when it is killed, so it is stopped in order.
    of(RestartedBroker, "restart", Mosquitto),
    *(of(SilentBroker, "silence", broker) for broker in (Nats, Redis, RabbitMq, Mosquitto)),
    *(of(RefusingBroker, "refuse", broker) for broker in (Nats, Redis, RabbitMq, Mosquitto)),
    HalfConfirmingBroker,
]
