"""Faults of nodes: they die, or stand still for longer than their lease."""

from chaos.faults.fault import ALL_STORES, TAKEOVER, Fault


class KillNode(Fault):
    """The node that delivers is killed, and another one started after the other node has taken over; twice."""

    name = "kill-node"
    summary = "kill -9 of the delivering node, twice; another one is started once the remaining one has taken over"
    stores = ALL_STORES
    duplicates = "lines that were written and not recorded when the node was killed"
    allowed_gap = TAKEOVER
    lines_may_break = True

    def strike(self, world):
        for _ in range(2):
            node = world.active_node()
            node.kill()
            world.say(f"{node.name} killed")
            world.go_on_without(node, self.lease + 1)
            world.start_node()
            world.wait_for_arrivals()


class PauseNode(Fault):
    """The node that delivers is stopped by SIGSTOP until its lease has ended and others have taken over."""

    name = "pause-node"
    summary = "SIGSTOP of the delivering node for twice its lease and until the other one has taken over, then SIGCONT; twice"
    stores = ALL_STORES
    duplicates = "what the node had under way when it was stopped is delivered by the next owner, and again by itself"
    allowed_gap = TAKEOVER
    #: How often the node was stopped while it had locked the file of SQLite, which nobody can take over from it.
    locked = 0

    def strike(self, world):
        for _ in range(2):
            node = world.active_node()
            node.pause()
            world.say(f"{node.name} stands still")
            if world.database.is_writable():
                world.go_on_without(node, self.lease * 2)
            else:
                self.locked += 1
                self.allowed_gap = self.lease * 2 + TAKEOVER
                world.pause(self.lease * 2)
            node.resume()
            world.wait_for_arrivals()

    def figures(self, world):
        return {"file_locked": self.locked} if world.cell.store == "sqlite" else {}


FAULTS = [KillNode, PauseNode]
