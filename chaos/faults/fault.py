"""The port of faults: what one prepares, what it does to a run under load, and what it may lead to."""

from chaos import course, relay

ALL_STORES = ("postgres15", "postgres18", "mariadb", "sqlite")
SERVERS = ("postgres15", "postgres18", "mariadb")
POSTGRES = ("postgres15", "postgres18")
ALL_MODES = ("single_node", "multi_node", "partitioned", "ordered")
#: Seconds of a lease.
LEASE = 3
#: Seconds without an arrival in which another node has to have taken over: a lease, and what a busy machine needs.
TAKEOVER = LEASE + 5


class Fault:
    """A fault. Subclasses override what differs from a run without one."""

    name = ""
    #: What happens, for the table.
    summary = ""
    stores = SERVERS
    modes = ALL_MODES
    #: Why events may arrive twice; empty if they must not.
    duplicates = ""
    #: The lease of the nodes, in seconds.
    lease = LEASE
    nodes = 2
    #: How long pending events may take to be delivered once the fault is over and nothing is written any more.
    recovery = 60
    #: Whether relays may end by themselves; they are started again then.
    nodes_may_end = False
    #: Whether a primary may lose what its replica had not received.
    database_may_lose = False
    #: Whether nothing may run beside it, since it measures time.
    alone = False
    #: Seconds without an arrival that are in order, from the beginning of the fault on; None if nothing bounds them.
    allowed_gap = None
    load = {}
    #: Events a second in mode `ordered`: where each waits for the one before, a busy machine must still be able to catch up.
    ordered_rate = 150

    #: Whether a line may be cut off: that of a node that was killed, or on a full disk.
    lines_may_break = False
    #: Whether transactions of the load have to fail by it.
    writers_fail = False

    def __init__(self):
        #: Reasons to think that the fault has not struck.
        self.doubts = []

    def unavailable(self):
        """Why this machine cannot run it, or None."""
        return None

    def database_folder(self, world):
        return world.path("database")

    def arrange(self, world):
        """Starts database, proxies and brokers."""
        world.create_database()
        world.migrate()

    def node(self, world, name):
        return relay.lines_node(world, name)

    def wait_until_steady(self, world):
        world.wait_for_arrivals(course.STEADY)

    def course(self, world, result):
        course.under_load(self, world, result)

    def strike(self, world):
        """Does the fault from its beginning to its end."""

    def evidence(self, world, verdict):
        """Why this run proves nothing, since the fault has not struck in it; or None."""
        if self.writers_fail and world.load.errors == world.earlier_errors:
            self.doubts.append("no transaction of the writers has failed")
        return "; ".join(self.doubts) or None

    def arrivals(self, world):
        """What has arrived, in its order."""
        return world.arrivals.all

    def figures(self, world):
        """Further measurements of the run, by name."""
        return {}
