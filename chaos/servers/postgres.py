"""Private PostgreSQL servers: Debian's release, and the one that an npm package brings."""

import glob
import os
import shutil
import signal
import subprocess

from chaos.processes import ChaosError, Process, free_port, give_to_owner, run_as_owner, wait_until
from chaos.servers.database import CliSession, Database
from chaos.servers.tools import postgres18

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 60
log_line_prefix = '%m [%p] %a '
restart_after_crash = on
# Shared memory of a killed server goes with its folder.
dynamic_shared_memory_type = mmap
"""


def programs(version):
    """The folders of the server's programs and of its libraries."""
    if version == "18":
        return postgres18()
    found = sorted(glob.glob(f"/usr/lib/postgresql/{version}/bin")) or sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        raise ChaosError("no PostgreSQL server programs found; run scripts/setup")
    return found[-1], None


class Postgres(Database):
    """One server. Its URL may name a replica as a second host."""

    WALL_CLOCK = "select extract(epoch from clock_timestamp())"
    STATISTICS = " ".join("""
        select 'table', pg_table_size('outbox_event') union all select 'indexes', pg_indexes_size('outbox_event')
        union all select 'live', n_live_tup from pg_stat_user_tables where relname = 'outbox_event'
        union all select 'dead', n_dead_tup from pg_stat_user_tables where relname = 'outbox_event'
        union all select 'vacuums', autovacuum_count from pg_stat_user_tables where relname = 'outbox_event'
        union all select 'pending', count(*) from outbox_event where status in (0, 2)
        union all select 'database', pg_database_size(current_database())
        union all select 'written', pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')
        union all select 'connections', count(*) from pg_stat_activity where application_name = 'pillarbox';
        """.split())

    def __init__(self, folder, version="15", *, settings="", env=None, preload=None):
        super().__init__(folder)
        self.kind, self.version = f"postgres{version}", version
        self.bin, libraries = programs(version)
        self.env = {**(env or {}), **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
        self.settings, self.preload, self.port = settings, preload, free_port()
        self.data, self.log = os.path.join(folder, "data"), os.path.join(folder, "server.log")
        self.other = None
        self.process = None

    def create(self):
        give_to_owner(self.folder)
        run_as_owner([f"{self.bin}/initdb", f"--pgdata={self.data}", "--username=postgres", "--auth=trust",
                      "--encoding=UTF8", "--locale=C", "--no-sync"], env={**os.environ, **self.env})
        self.write_settings()
        return self

    def write_settings(self):
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write(f"{SETTINGS}\nport = {self.port}\n{self.settings}\n")

    def start(self):
        command = [f"{self.bin}/postgres", "-D", self.data]
        self.process = Process(command, self.log, owned=True, env=self.env, preload=self.preload).start()
        return self

    def started(self, seconds=60):
        """Starts the server until it answers, again if what is left of a killed one is in the way."""
        if not (self.process and self.process.is_alive()):
            self.start()

        def up():
            if not self.process.is_alive():
                self.start()
            return self.answers()

        try:
            wait_until(f"{self.kind} answers", up, seconds, 0.1)
        except ChaosError as error:
            raise ChaosError(f"{error}; {self.process.said()}") from None
        return self

    def kill(self):
        self.process.kill()

    def stop(self):
        """A clean stop that does not wait for clients."""
        if self.process.end(signal.SIGINT, 60) is None:
            raise ChaosError("PostgreSQL did not stop")

    def close(self):
        if self.process:
            self.process.kill()

    def replica(self, folder):
        """A server that follows this one: a copy of its data, taken while it is stopped."""
        self.stop()
        replica = Postgres(folder, self.version, settings=self.settings)
        shutil.rmtree(replica.data, ignore_errors=True)
        shutil.copytree(self.data, replica.data)
        open(os.path.join(replica.data, "standby.signal"), "w").close()
        replica.settings += (f"\nprimary_conninfo = 'host=127.0.0.1 port={self.port} user=postgres "
                             f"application_name=replica'\n")
        replica.write_settings()
        os.chmod(replica.data, 0o700)
        give_to_owner(folder)
        self.started()
        replica.started()
        wait_until("the replica follows", lambda: self.query(
            "select count(*) from pg_stat_replication where state = 'streaming'") == [["1"]])
        return replica

    def promote(self):
        self.execute("select pg_promote()")

    def follow_no_more(self):
        """Makes a replica lag: from now on it receives nothing."""
        self.execute("alter system set primary_conninfo = ''")
        self.execute("select pg_reload_conf()")
        wait_until("the replica follows no more", lambda: self.query(
            "select count(*) from pg_stat_wal_receiver") == [["0"]])

    def url(self, port=None, parameters=""):
        if self.other is None or port is not None:
            hosts = f"127.0.0.1:{port or self.port}"
        else:
            hosts = f"127.0.0.1:{self.port},127.0.0.1:{self.other.port}"
            parameters = parameters or "?target_session_attrs=read-write"
        return f"postgres://postgres@{hosts}/postgres{parameters}"

    def query(self, sql):
        """Asks this very server, whatever other one the URL names."""
        done = subprocess.run(["psql", "-qAtX", "-F", "\t", "-v", "ON_ERROR_STOP=1", self.url(self.port), "-c", sql],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise ChaosError(f"psql: {done.stderr.strip()}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def run_script(self, text):
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", self.url()], input=text, text=True, check=True, timeout=60,
                       capture_output=True)

    def session(self):
        return CliSession(["psql", "-qAtX", "-F", "\t", "-v", "ON_ERROR_STOP=1", self.url()], r"\echo {}")

    def hold_snapshot(self):
        session = self.session()
        session.run("begin isolation level repeatable read; select count(*) from outbox_event;")
        return session

    def end_clients(self):
        """Ends the connections of the relay."""
        return "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pillarbox';"
