"""The nodes of a soak, each behind a proxy of its own, and how they are configured."""

from chaos import relay
from chaos.processes import ChaosError

ROUTE = """[[route]]
name = "all"
publisher = "{name}"
to = "{target}"
[route.breaker]
max_pause = "2s"
"""


class Fleet:
    """A slot for each node: one that was killed is followed by another in its slot."""

    def __init__(self, world, nodes, lease, retention, interval):
        self.world, self.lease, self.retention, self.interval = world, lease, retention, interval
        self.slots, self.proxies, self.urls = [], [], []
        for _ in range(nodes):
            self.proxies.append(world.proxied())
            self.urls.append(world.relay_url)
            self.slots.append(None)

    def start(self, slot):
        world, name = self.world, f"node-{len(self.world.nodes) + 1}"
        world.relay_url = self.urls[slot]
        broker = world.broker
        source = (f'ownership.node_name = "{name}"\nownership.lease = "{self.lease}s"\n'
                  f'purge.done_after = "{self.retention}s"\npurge.interval = "{self.interval}s"\n')
        node = relay.configured_node(world, name, broker.section() + ROUTE.format(name=broker.name, target=broker.target),
                                     source)
        self.slots[slot] = world.start_node(node)
        return node

    def check(self):
        for proxy in self.proxies:
            if proxy.child.poll() is not None:
                raise ChaosError("a proxy has ended")
        if self.world.stream.error is not None:
            raise ChaosError(f"the stream cannot be read: {self.world.stream.error!r}")
