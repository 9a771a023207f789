"""Failovers to a replica. PostgreSQL: under a URL of both hosts. MariaDB: behind an address that moves."""

from chaos.faults.fault import Fault
from chaos.processes import free_port
from chaos.proxy import Proxy
from chaos.servers.postgres import Postgres

#: A row is seen by nobody before the replica has it. The primary waits only once there is a replica.
SEMI_SYNC = ["--rpl-semi-sync-slave-enabled=1", "--rpl-semi-sync-master-timeout=600000",
             "--rpl-semi-sync-master-wait-point=AFTER_SYNC"]


class Failover(Fault):
    synchronous = False
    duplicates = "lines that were written and recorded only on the primary that died, or not at all"
    writers_fail = True

    def arrange(self, world):
        if world.cell.store == "mariadb":
            self.arrange_mariadb(world)
        else:
            self.arrange_postgres(world)
        world.migrate()

    def arrange_postgres(self, world):
        primary = world.create_database()
        self.replica = world.keep(primary.replica(world.path("replica")))
        if self.synchronous:
            primary.execute("alter system set synchronous_standby_names = 'replica'")
            primary.execute("select pg_reload_conf()")
        primary.other = self.replica
        self.replica.other = primary

    def arrange_mariadb(self, world):
        """Both servers stand behind one address, as with a virtual one; writers and relays know no other."""
        primary = world.new_database("", None, None)
        primary.settings = SEMI_SYNC if self.synchronous else []
        world.database = world.keep(primary)
        primary.create().started()
        primary.create_shop()
        self.replica = primary.replica(world.path("replica"))
        world.keep(self.replica)
        if self.synchronous:
            primary.query("set global rpl_semi_sync_master_enabled = 1", database=None)
            self.replica.query("stop slave; start slave", database=None)
            self.replica.wait_until_following()
        self.address = world.keep(Proxy(free_port(), primary.port))
        primary.write_port = self.replica.write_port = self.address.port
        world.relay_url = primary.url()

    def strike(self, world):
        if not self.synchronous:
            self.replica.follow_no_more()
            world.pause(1)
        world.database.kill()
        world.say("primary killed")
        world.pause(1)
        self.replica.promote()
        world.say("replica promoted")
        world.database = world.load.database = self.replica
        if isinstance(self.replica, Postgres):
            self.replica.execute("alter system set synchronous_standby_names = ''")
            self.replica.execute("select pg_reload_conf()")
        else:
            self.address.tell(f"target 127.0.0.1 {self.replica.port}")
        world.wait_for_arrivals()


class AsynchronousFailover(Failover):
    name = "failover-async"
    summary = "kill -9 of the primary, and promotion of a replica that is a second behind"
    database_may_lose = True

    def evidence(self, world, verdict):
        if not verdict.lost_by_database:
            self.doubts.append("the replica was not behind")
        return super().evidence(world, verdict)


class SynchronousFailover(Failover):
    name = "failover-sync"
    summary = "kill -9 of the primary, and promotion of a synchronous replica"
    synchronous = True


FAULTS = [AsynchronousFailover, SynchronousFailover]
