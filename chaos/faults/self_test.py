"""The test of the faults: each is made to miss its target, and has to say so."""

import contextlib
import os
import socket
import tempfile
import threading
import time
from types import SimpleNamespace

from chaos import course
from chaos.arrivals import Arrival, Arrivals
from chaos.checker import Verdict
from chaos.events import event
from chaos.faults.brokers import HalfConfirmingBroker, KilledBroker
from chaos.faults.clock import ClockBack, ClockForward
from chaos.faults.database import FullDisk, HeldSnapshot, KillDatabase
from chaos.faults.failover import AsynchronousFailover
from chaos.faults.fault import Fault
from chaos.faults.measurements import SilentBrokerFewKeys
from chaos.faults.network import LATE, Network, StalledNode
from chaos.faults.nodes import KillNode, PauseNode
from chaos.load import Written
from chaos.processes import ChaosError, free_port
from chaos.proxy import Counts, Proxy
from chaos.servers.database import Row
from chaos.world import World


def say(what, good, seen=""):
    print(f"faults, {what}: {'found' if good else f'MISSED: {seen}'}")
    return good


def refused(action, *arguments):
    """What an action complains of; empty if it does not."""
    try:
        action(*arguments)
        return ""
    except ChaosError as error:
        return str(error)


def clocks():
    """A clock that goes as it is told, one that does not, and one that goes half the way."""
    good = True
    for kind in (ClockForward, ClockBack):
        for share, wanted in ((1, ""), (0, "went by 0 s"), (0.5, f"went by {kind.hours * 1800} s")):
            fault = kind()
            with tempfile.TemporaryDirectory() as folder:
                fault.file = os.path.join(folder, "clock")
                fault.set(0)
                found = refused(fault.jump, SimpleNamespace(say=lambda _: None, database=Faked(fault.file, share)))
            good &= say(f"{kind.name} by {share} of it", wanted in found and bool(wanted) == bool(found), found)
    return good


class Faked:
    """A database with a clock that obeys a file, by a share of what that says."""

    WALL_CLOCK = "select now"

    def __init__(self, file, share):
        self.file, self.share = file, share

    def session(self):
        return SimpleNamespace(run=lambda _: [str(1e9 + self.share * self.offset())], close=lambda: None)

    def offset(self):
        with open(self.file) as file:
            return float(file.read())


class Deserted(World):
    """A world of two nodes, of which one is away. `deliver` says who goes on."""

    SHARE = 1

    def __init__(self, deliverers, left):
        self.fault, self.arrivals, self.seen, self.left = SimpleNamespace(recovery=0.2), Arrivals(os.devnull), 0, left
        self.deliverers, self.database = deliverers, self

    def highest(self):
        self.seen += 1
        return self.seen

    def pending(self, _):
        return self.left

    def wait_for_arrivals(self):
        self.arrivals.all += [Arrival(f"e-{number}", number, "k", "", f"{name}-01JD", time.monotonic())
                              for number, name in enumerate(self.deliverers)]

    def check_nodes(self):
        return False


def takeovers():
    """A node that is away has to be replaced, and has to stay away."""
    victim, good = SimpleNamespace(name="node-1"), True
    for what, deliverers, left, wanted in (("another one delivers", ["node-2", "node-10"], 0, ""),
                                           ("nobody does its share", ["node-2"], 7, "the share of node-1"),
                                           ("it goes on to deliver", ["node-2", "node-1", "node-2"], 0, "node-1 delivered")):
        found = refused(Deserted(deliverers, left).go_on_without, victim, 0)
        good &= say(f"a node is gone, {what}", wanted in found and bool(wanted) == bool(found), found)
    return good


def judged(fault, gap=None, broken=0, earlier_errors=0):
    """The problems of a run in which all is well but what is said here."""
    written, arrivals = Written(committed={"e": event("e", "k")}), Arrivals(os.devnull)
    arrivals.all, arrivals.broken = [Arrival("e", 1, *event("e", "k"), "node-1-01JD", 1.0)], broken
    world = SimpleNamespace(cell=SimpleNamespace(mode="partitioned"), arrivals=arrivals, say=lambda _: None, save=lambda *_: None,
                            load=SimpleNamespace(written=written, errors=2), earlier_errors=earlier_errors,
                            database=SimpleNamespace(rows=lambda: [Row(1, "e", "k", 1)]))
    fault.arrivals = lambda _: arrivals.all
    result = course.Result("cell", longest_gap=gap)
    course.judge(fault, world, result)
    return result.problems


class Followed:
    """A world that notes the calls of a fault in their order."""

    def __init__(self):
        self.calls, self.database, self.name = [], self, "node-1"

    def __getattr__(self, name):
        return lambda *_: self.calls.append(name)

    def active_node(self):
        return self

    def is_writable(self):
        return True

    def tell(self, command):
        self.calls.append(command)
        return Counts(1, len(self.calls), 0)


def returns():
    """A node comes back, or is replaced, only after the others had to go on without it."""
    good = True
    for kind, gone, back in ((KillNode, "kill", "start_node"), (PauseNode, "pause", "resume"), (StalledNode, "one-way", "pass"),
                             (ClockBack, "kill", "start_node")):
        fault, world = kind(), Followed()
        fault.proxies, fault.jump = {"node-1": world}, lambda _: None
        fault.strike(world)
        places = [world.calls.index(gone), world.calls.index("go_on_without", world.calls.index(gone)),
                  world.calls.index(back, world.calls.index(gone))]
        good &= say(f"{kind.name}, others go on before the node is back", places == sorted(places), world.calls)
    return good


def cuts():
    """Nothing may be delivered after the end of all leases while nothing flows."""
    quiet, late = cut_with(0), cut_with(3)
    good = say("nothing flows, nobody delivers", not quiet, quiet)
    return good & say("nothing flows, somebody delivers", len(late) == 1, late)


def cut_with(count):
    fault, world = Network(), Followed()
    fault.lease, fault.proxy, world.arrivals = -LATE, world, Arrivals(os.devnull)

    def pause(_):
        world.arrivals.all += [Arrival("e", 1, "k", "", "node-1-01JD", time.monotonic())] * count
        time.sleep(0.01)

    world.pause = pause
    fault.disturb(world, "stall", 6)
    return fault.doubts


def verdicts():
    """What makes a run a failed one beside its events."""
    good = True
    for what, problems, wanted in (
            ("nothing is planted", judged(Fault(), gap=100.0), ""),
            ("a takeover in time", judged(KillNode(), gap=KillNode.allowed_gap), ""),
            ("a late takeover", judged(KillNode(), gap=KillNode.allowed_gap + 0.1), "nothing arrived for"),
            ("a broken line", judged(Fault(), broken=1), "1 broken lines"),
            ("a broken line of a killed node", judged(KillNode(), broken=1), ""),
            ("a failed transaction", judged(KillDatabase()), ""),
            ("no transaction fails", judged(KillDatabase(), earlier_errors=2), "not have struck: no transaction"),
            ("no event is sent again", judged(HalfConfirmingBroker()), "not have struck: no event"),
            ("the replica is not behind", judged(AsynchronousFailover()), "not have struck: the replica"),
    ):
        good &= say(what, wanted in "".join(problems) and len(problems) == bool(wanted), problems)
    repeated = HalfConfirmingBroker().evidence(None, Verdict(duplicates=1))
    return good & say("an event is sent again", repeated is None, repeated)


def proxies():
    """A proxy that carries nothing, and one with traffic that each command meets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        commands, port = ("stall", "one-way", "delay 0.02", "rate 100", "cut"), server.getsockname()[1]
        return all([proxy_for(command, port) for command in commands])


def proxy_for(command, port):
    proxy, empty, used = Proxy(free_port(), port), Network(), Network()
    try:
        with empty.disturbed(proxy, command):
            pass
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            client.sendall(b"ping")
            client.recv(4)
            with used.disturbed(proxy, command):
                disturb(client, proxy.port, command)
    finally:
        proxy.close()
    good = say(f"{command}, and nobody is there", len(empty.doubts) == 2, empty.doubts)
    return good & say(f"{command}, and somebody is there", not used.doubts, used.doubts)


def echo(server):
    """Sends back what comes, to one client after the other."""
    while True:
        try:
            with server.accept()[0] as client:
                while data := client.recv(4096):
                    client.sendall(data)
        except OSError:
            if server.fileno() < 0:
                return


def disturb(client, port, command):
    """Traffic that a command meets: a chunk there and back, or for `cut` a new connection."""
    if command != "cut":
        client.sendall(b"ping")
        time.sleep(0.4)
        return
    with socket.create_connection(("127.0.0.1", port), timeout=10) as other, contextlib.suppress(ConnectionError):
        other.recv(1)


def disks():
    """A full disk, and one that cannot be written for another reason."""
    with open("/dev/full", "wb", buffering=0) as full, open(os.devnull, "rb", buffering=0) as other:
        FullDisk.fill(full)
        try:
            FullDisk.fill(other)
            return say("a disk that is not full", False)
        except OSError:
            return say("a disk that is not full", True)


def snapshots():
    good = True
    for what, counts, doubts in (("a snapshot that stays", [["7"], ["7"]], 0), ("a snapshot that moves", [["7"], ["8"]], 1),
                                 ("a snapshot that is gone", [["7"], None], 1)):
        fault = HeldSnapshot()
        fault.holder = SimpleNamespace(run=lambda _, counts=counts: counts.pop(0))
        fault.seen = fault.look()
        fault.strike(SimpleNamespace(pause=lambda _: None))
        good &= say(what, len(fault.doubts) == doubts, fault.doubts)
    return good


def brokers():
    """Deliveries have to stop while a broker is away."""
    good = True
    for what, counts, doubts in (("a broker is away", [50, 50], 0), ("a broker is there", [50, 57], 1)):
        fault = KilledBroker()
        fault.delivered = lambda _, counts=counts: counts.pop(0)
        fault.go_on_without(SimpleNamespace(pause=lambda _: None), 2)
        good &= say(what, len(fault.doubts) == doubts, fault.doubts)
    return good


class Neighbours(SilentBrokerFewKeys):
    """Two routes; `waits` says that one waits for the broker of the other, `confirms` that the silent broker is none."""

    SILENT = AFTER_COMMIT = 0.2

    def __init__(self, waits=False, confirms=False):
        super().__init__()
        self.waits, self.confirms, self.process, self.is_silent = waits, confirms, self, False

    def pause(self):
        self.is_silent = True

    def resume(self):
        self.is_silent = False

    def pass_on(self, *_):
        return time.monotonic()

    def query(self, sql):
        if "status = 1" in sql:
            return [["5" if self.confirms else "0"]]
        return [["5" if self.waits and self.is_silent else "0"]]

    def doubts_of_a_run(self):
        self.disturbed(SimpleNamespace(database=self, pause=time.sleep, say=lambda _: None), self, None)
        return self.doubts


def neighbours():
    good = say("a route goes on beside a silent broker", Neighbours().doubts_of_a_run() == [])
    for what, fault, wanted in (("a route waits for a silent broker", Neighbours(waits=True), "was not through"),
                                ("a silent broker confirms", Neighbours(confirms=True), "has confirmed")):
        found = fault.doubts_of_a_run()
        good &= say(what, len(found) == 1 and wanted in found[0], found)
    kind = SilentBrokerFewKeys
    good &= say("a slow machine", refused(kind().check_speed, kind.SILENT / 3 + 0.1) != "")
    good &= say("a machine that is fast enough", refused(kind().check_speed, kind.SILENT / 3) == "")
    return good & say("the bound of a machine that is just fast enough lies within the silence",
                      kind.bound(kind.SILENT / 3) < kind.AFTER_COMMIT)


def run():
    """True if everything was found."""
    return all([test() for test in (clocks, takeovers, returns, cuts, verdicts, proxies, disks, snapshots, brokers, neighbours)])
