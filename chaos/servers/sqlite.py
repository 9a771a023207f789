"""A SQLite database: a file, which the relays and the writer share."""

import os
import sqlite3

from chaos.processes import ChaosError
from chaos.servers.database import Database


class Sqlite(Database):
    """The file and the connections to it."""

    kind = "sqlite"
    concurrent_writers = 1

    def __init__(self, folder):
        super().__init__(folder)
        self.path = os.path.join(folder, "shop.db")

    def create(self):
        return self

    def started(self):
        return self

    def close(self):
        pass

    def url(self, port=None, parameters=""):
        return f"sqlite://{self.path}{parameters}"

    def query(self, sql):
        try:
            connection = sqlite3.connect(self.path, timeout=20)
            try:
                with connection:
                    return [["" if value is None else str(value) for value in row] for row in connection.execute(sql)]
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise ChaosError(f"sqlite: {error}") from None

    def is_writable(self):
        connection = sqlite3.connect(self.path, timeout=2, isolation_level=None)
        try:
            connection.execute("begin immediate")
            return True
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()

    def run_script(self, text):
        connection = sqlite3.connect(self.path)
        connection.executescript(text)
        connection.commit()
        connection.close()

    def session(self):
        return SqliteSession(self.path)

    def hold_snapshot(self):
        session = self.session()
        session.run("begin; select count(*) from outbox_event;")
        return session


class SqliteSession:
    """A connection of Python's own library. One whose transaction failed has taken no effect."""

    def __init__(self, path):
        self.connection = sqlite3.connect(path, timeout=20, isolation_level=None, check_same_thread=False)

    def run(self, sql, seconds=20):
        try:
            cursor, printed = self.connection.cursor(), []
            for statement in filter(str.strip, sql.split(";")):
                cursor.execute(statement)
                printed += ["\t".join(map(str, row)) for row in cursor.fetchall()]
            return printed
        except sqlite3.Error:
            return None

    def close(self):
        self.connection.close()
