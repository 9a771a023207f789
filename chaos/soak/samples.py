"""A sample every few seconds of processes, tables and latency, as a line of JSON."""

import json
import os
import threading
import time

from chaos.processes import children_of
from chaos.soak.flatness import percentile

MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")


def process(pid):
    """Resident memory in MiB, open files, threads and seconds of CPU; None if the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            status = dict(line.rstrip("\n").split(":", 1) for line in file)
        return {"rss": round(int(status["VmRSS"].split()[0]) / 1024, 2), "threads": int(status["Threads"]),
                "fds": len(os.listdir(f"/proc/{pid}/fd")), "cpu": cpu(pid)}
    except (OSError, KeyError, ValueError):
        return None


def cpu(pid, ended_children=False):
    """Seconds of CPU that a process has used, with those of its ended children if asked."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15 if ended_children else 13])) / TICKS


def cpu_of_server(pid):
    """Seconds of CPU of a server that has a process for each connection."""
    try:
        total = cpu(pid, ended_children=True)
        for child in children_of(pid):
            total += cpu(child)
        return total
    except OSError:
        return None


class Sampler:
    """Takes samples from a thread of its own. While the database does not answer, its columns are empty."""

    def __init__(self, world, fleet, tally, clock, path, every=5.0):
        self.world, self.fleet, self.tally, self.clock, self.every = world, fleet, tally, clock, every
        self.all = []
        self._file = open(path, "w")
        self._session = None
        self._before = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def close(self):
        self._stop.set()
        self._thread.join(60)
        if self._session is not None:
            self._session.close()
            self._session = None
        self._file.close()

    def _run(self):
        due, last = time.monotonic(), self.clock()
        while not self._stop.is_set():
            due = max(due + self.every, time.monotonic())
            self._stop.wait(due - time.monotonic())
            now = self.clock()
            sample = {"t": round(now, 2), "seconds": round(now - last, 2), **self._nodes(now - last),
                      **self._latency(), **self._database(now - last), "load": os.getloadavg()[0],
                      "harness": (process(os.getpid()) or {}).get("rss")}
            last = now
            self.all.append(sample)
            self._file.write(json.dumps(sample) + "\n")
            self._file.flush()

    def _nodes(self, seconds):
        nodes = [(node.name, process(node.pid) if node.is_alive() else None) for node in self.fleet.slots]
        alive = [node for _, node in nodes if node]
        used = [self._rate(name, node["cpu"], seconds) for name, node in nodes if node]
        first = nodes[0][1] or {}
        return {"names": [name for name, _ in nodes], "rss": [node and node["rss"] for _, node in nodes],
                "fds": [node and node["fds"] for _, node in nodes],
                "rss_first": first.get("rss"), "fds_first": first.get("fds"),
                **{f"{name}_most": max((node[name] for node in alive), default=None) for name in ("rss", "fds", "threads")},
                "cpu_relays": round(sum(rate for rate in used if rate is not None), 3)}

    def _rate(self, name, value, seconds):
        """The growth of a counter in a second."""
        before = self._before.get(name)
        self._before[name] = value
        return None if before is None or value is None or value < before else (value - before) / seconds

    def _latency(self):
        found = [round(seconds * 1000, 1) for seconds in self.tally.latencies()]
        return {"arrived": self.tally.arrived, "committed": self.tally.committed(), "repeated": len(self.tally.repeated),
                "latency_p50": percentile(found, 0.5), "latency_p99": percentile(found, 0.99),
                "latency_max": max(found, default=None)}

    def _database(self, seconds):
        database, found = self.world.database, {}
        if self._session is None:
            self._session = database.session()
        printed = self._session.run(database.STATISTICS, 10)
        if printed is None:
            self._session.close()
            self._session = None
        else:
            found = dict(line.split("\t") for line in printed)
        columns = {name: round(float(found[name]) / (MIB if name in database.BYTES else 1), 1)
                   for name in found if found[name] not in ("", "NULL")}
        used = cpu_of_server(database.process.pid) if printed is not None else None
        rate = self._rate("database", used, seconds)
        return {**columns, "cpu_database": None if rate is None else round(rate, 3)}
