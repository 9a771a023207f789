"""Faults of nodes: they die, or stand still for longer than their lease."""

from chaos.faults.fault import ALL_STORES, Fault


class KillNode(Fault):
    """The node that delivers is killed, and another one started after its lease has ended; twice."""

    name = "kill-node"
    summary = "kill -9 of the delivering node, twice; another one is started a lease later"
    stores = ALL_STORES
    duplicates = "lines that were written and not recorded when the node was killed"

    def strike(self, world):
        for _ in range(2):
            node = world.active_node()
            node.kill()
            world.say(f"{node.name} killed")
            world.pause(self.lease + 1)
            world.start_node()
            world.wait_for_arrivals()


class PauseNode(Fault):
    """The node that delivers is stopped by SIGSTOP until its lease has ended and others have taken over."""

    name = "pause-node"
    summary = "SIGSTOP of the delivering node for twice its lease, then SIGCONT; twice"
    stores = ALL_STORES
    duplicates = "what the node had under way when it was stopped is delivered by the next owner, and again by itself"

    def strike(self, world):
        for _ in range(2):
            node = world.active_node()
            node.pause()
            world.say(f"{node.name} stands still")
            world.pause(self.lease * 2)
            node.resume()
            world.wait_for_arrivals()


FAULTS = [KillNode, PauseNode]
