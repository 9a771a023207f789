"""Private MariaDB servers."""

import os
import shutil
import signal
import subprocess

from chaos.processes import ChaosError, Process, free_port, give_to_owner, run_as_owner, wait_until
from chaos.servers.database import CliSession, Database

USER = "relay"


def program(name):
    """Debian keeps the server out of an ordinary user's PATH."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if not found:
        raise ChaosError(f"the program {name} of MariaDB was not found; run scripts/setup")
    return found


class MariaDb(Database):
    """One server, with row-based binary logs so that a replica may follow."""

    kind = "mariadb"
    WALL_CLOCK = "select unix_timestamp(sysdate(6))"
    STATISTICS = " ".join("""
        select 'table', data_length from information_schema.tables where table_name = 'outbox_event'
        union all select 'indexes', index_length from information_schema.tables where table_name = 'outbox_event'
        union all select 'live', table_rows from information_schema.tables where table_name = 'outbox_event'
        union all select 'pending', count(*) from outbox_event where status in (0, 2)
        union all select 'database', sum(data_length + index_length + data_free) from information_schema.tables
            where table_schema = database()
        union all select 'connections', count(*) from information_schema.processlist;
        """.split())

    def __init__(self, folder, number=1, *, settings=(), env=None, preload=None):
        super().__init__(folder)
        self.number, self.settings, self.env, self.preload = number, list(settings), env, preload
        self.port = free_port()
        self.data, self.log = os.path.join(folder, "data"), os.path.join(folder, "server.log")
        #: The port that writers connect to: another one where an address moves with a failover.
        self.write_port = None
        self.process = None

    def create(self):
        # A server that starts removes the temporary tables of all others from a folder that they share.
        self.temporary = os.path.join(self.folder, "tmp")
        os.makedirs(self.temporary, exist_ok=True)
        give_to_owner(self.folder)
        run_as_owner([program("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}",
                      f"--tmpdir={self.temporary}", "--auth-root-authentication-method=normal", "--skip-test-db"])
        return self

    def start(self):
        command = [program("mariadbd"), "--no-defaults", f"--datadir={self.data}", f"--socket={self.folder}/socket",
                   f"--tmpdir={self.temporary}",
                   "--bind-address=127.0.0.1", f"--port={self.port}", f"--pid-file={self.folder}/pid",
                   "--skip-name-resolve", f"--server-id={self.number}", f"--log-bin={self.folder}/binlog",
                   "--binlog-format=ROW", "--log-slave-updates", "--max-allowed-packet=64M", *self.settings]
        self.process = Process(command, self.log, owned=True, env=self.env, preload=self.preload).start()
        return self

    def started(self, seconds=90):
        if not (self.process and self.process.is_alive()):
            self.start()

        def up():
            if not self.process.is_alive():
                self.start()
            return self.answers()

        try:
            wait_until("MariaDB answers", up, seconds, 0.1)
        except ChaosError as error:
            raise ChaosError(f"{error}; {self.process.said()}") from None
        return self

    def create_shop(self):
        """Creates the database and the users' account; a replica gets both from its primary."""
        self.query(f"create database shop; create user {USER}@'%'; grant all on shop.* to {USER}@'%'", database=None)
        return self

    def answers(self):
        try:
            return self.query("select 1", database=None) == [["1"]]
        except (ChaosError, subprocess.TimeoutExpired):
            return False

    def kill(self):
        self.process.kill()

    def stop(self):
        if self.process.end(signal.SIGTERM, 60) is None:
            raise ChaosError("MariaDB did not stop")

    def close(self):
        if self.process:
            self.process.kill()

    def url(self, port=None, parameters=""):
        return f"mysql://{USER}@127.0.0.1:{port or self.write_port or self.port}/shop{parameters}"

    def client(self, port, user):
        return ["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--skip-reconnect",
                "--host=127.0.0.1", f"--port={port}", f"--user={user}", "--connect-timeout=5"]

    def query(self, sql, database="shop"):
        name = [f"--database={database}"] if database else []
        done = subprocess.run([*self.client(self.port, "root"), "--raw", *name, "-e", sql], capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise ChaosError(f"mariadb: {done.stderr.strip()}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def run_script(self, text):
        subprocess.run([*self.client(self.port, "root"), "shop"], input=text, text=True, check=True, timeout=60,
                       capture_output=True)

    def session(self):
        return CliSession([*self.client(self.write_port or self.port, USER), "shop"], "select '{}';")

    def hold_snapshot(self):
        session = self.session()
        session.run("set transaction isolation level repeatable read; start transaction with consistent snapshot;"
                    " select count(*) from outbox_event;")
        return session

    def replica(self, folder):
        replica = MariaDb(folder, self.number + 1, settings=[*self.settings, "--read-only"])
        replica.create().started()
        replica.query("stop slave; reset master; set global gtid_slave_pos = ''", database=None)
        replica.query(f"change master to master_host='127.0.0.1', master_port={self.port}, master_user='root', "
                      "master_use_gtid=slave_pos, master_connect_retry=1; start slave", database=None)
        replica.wait_until_following()
        return replica

    def wait_until_following(self):
        try:
            wait_until("the replica follows", lambda: self.slave("Slave_IO_Running") == "Yes"
                       and self.slave("Slave_SQL_Running") == "Yes")
        except ChaosError as error:
            raise ChaosError(f"{error}; {self.slave('Last_IO_Error')} {self.slave('Last_SQL_Error')}") from None

    def slave(self, field):
        command = [part for part in self.client(self.port, "root") if part != "--skip-column-names"]
        done = subprocess.run([*command, "-e", "show slave status\\G"], capture_output=True, text=True, timeout=30,
                              stdin=subprocess.DEVNULL)
        for line in done.stdout.splitlines():
            name, _, value = line.strip().partition(": ")
            if name == field:
                return value
        return ""

    def follow_no_more(self):
        self.query("stop slave io_thread", database=None)

    def promote(self):
        wait_until("the replica has applied what it has", lambda: self.slave("Slave_SQL_Running_State").startswith(
            "Slave has read all relay log"))
        self.query("stop slave; reset slave all; set global read_only = 0", database=None)
