"""The port of faults: what one prepares, what it does to a run under load, and what it may lead to."""

from chaos import course, relay

ALL_STORES = ("postgres15", "postgres18", "mariadb", "sqlite")
SERVERS = ("postgres15", "postgres18", "mariadb")
POSTGRES = ("postgres15", "postgres18")
ALL_MODES = ("single_node", "multi_node", "partitioned", "ordered")


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
    lease = 3
    nodes = 2
    #: How long pending events may take to be delivered once the fault is over and nothing is written any more.
    recovery = 60
    #: Whether relays may end by themselves; they are started again then.
    nodes_may_end = False
    #: Whether a primary may lose what its replica had not received.
    database_may_lose = False
    #: Whether nothing may run beside it, since it measures time.
    alone = False
    load = {}
    #: Events a second in mode `ordered`: where each waits for the one before, a busy machine must still be able to catch up.
    ordered_rate = 150

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

    def arrivals(self, world):
        """The ids of the events in the order of their arrival."""
        return world.arrivals.ids()

    def figures(self, world):
        """Further measurements of the run, by name."""
        return {}
