"""The course of a soak: arrange, load, strike at random, drain, judge."""

import json
import random
import shutil
import subprocess
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from chaos import relay
from chaos.cells import Cell
from chaos.course import ORDER, keep_evidence, safely
from chaos.faults.fault import Fault
from chaos.processes import ChaosError, wait_until
from chaos.servers.redis import Redis
from chaos.soak import figures
from chaos.soak.faults import Faults
from chaos.soak.fleet import Fleet
from chaos.soak.samples import Sampler
from chaos.soak.stream import Stream
from chaos.soak.tally import Tally
from chaos.soak.writers import Writers
from chaos.world import World

#: Seconds in which all that was committed has to be delivered once the load has ended.
DRAIN = 300


class Soaked(Fault):
    """The fault that the surroundings of a run ask for. It strikes nothing itself."""

    name = "soak"


@dataclass
class Result:
    """The summary of a run, as it is printed and saved."""

    cell: str
    program: str = ""
    seed: int = 0
    seconds: float = 0.0
    rate: int = 0
    nodes: int = 0
    #: Seconds until the first events were purged, from which on the table has its size.
    warm_up: float = 0.0
    events: int = 0
    arrived: int = 0
    lost: int = 0
    invented: int = 0
    stuck: int = 0
    dead: int = 0
    out_of_order: int = 0
    changed: int = 0
    duplicates: int = 0
    #: By the kind of fault: how often it struck, the repeated arrivals it explains, the slowest event, the median of the seconds
    #: from its end until its backlog was gone, and how often the next fault came before that.
    faults: dict = field(default_factory=dict)
    #: Metrics in the first, middle and last sixth of the time that counts.
    trends: list = field(default_factory=list)
    #: What speaks against the run, and what of it does not come from the figures.
    problems: list = field(default_factory=list)
    problems_of_the_run: list = field(default_factory=list)

    def passed(self):
        return not self.problems

    def growth_is_judged(self):
        return self.seconds - self.warm_up >= figures.LONG_ENOUGH

    @classmethod
    def again(cls, folder):
        """A run from its records, with the figures of today's bounds."""
        saved = json.loads((Path(folder) / "summary.json").read_text())
        if not saved["trends"]:
            raise ChaosError(f"the run in {folder} came to no verdict: {'; '.join(saved['problems'])}")
        result = cls(**{**saved, "problems": saved["problems_of_the_run"], "faults": {}, "trends": []})
        figures.add(result, *figures.read(folder))
        return result


class Soak:
    """One run. Its records go to `folder`, whatever happens."""

    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        self.world = World(Cell(Soaked, options.store, options.mode), Soaked(), rate=options.rate)
        self.result = Result(str(self.world.cell), program=version(), seed=options.seed, rate=options.rate,
                             nodes=options.nodes, warm_up=options.warm_up())
        self.began = time.time()
        self.began_by = time.monotonic()

    def clock(self):
        return time.monotonic() - self.began_by

    def run(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.arrange()
            self.soak()
            self.drain()
            self.judge()
        except (ChaosError, OSError, subprocess.SubprocessError, LookupError, ValueError, TypeError) as error:
            self.result.problems.append(f"{type(error).__name__}: {error}")
            self.world.say(traceback.format_exc())
        finally:
            if self.result.problems:
                keep_evidence(self.world, self.result)
            self.keep_logs()
            self.world.close()
        self.save("summary.json", vars(self.result))
        return self.result

    def arrange(self):
        options, world = self.options, self.world
        world.create_database(settings="max_connections = 100" if options.store != "mariadb" else "--max-connections=200")
        world.migrate()
        world.broker = world.keep(Redis(world.folder, keeps=False))
        world.broker.create()
        order = ORDER.get(options.mode)
        self.tally = Tally(1 if order == "table" else options.writers, options.rows, options.keys, order, self.began)
        world.stream = world.keep(Stream(world.broker.port, world.broker.target, self.tally.take).start())
        self.fleet = Fleet(world, options.nodes, options.lease, options.retention, options.purge_interval)
        for slot in range(options.nodes):
            self.fleet.start(slot)
        for node in self.fleet.slots:
            node.wait_until_ready()
        world.load = Writers(world.database, self.tally, rate=options.rate)
        world.stack.callback(world.end_load)
        self.faults = Faults(world, self.fleet, random.Random(options.seed), self.clock, options.lease, options.gap)
        self.sampler = world.keep(Sampler(world, self.fleet, self.tally, self.clock, self.folder / "samples.jsonl"))

    def soak(self):
        """Load and faults at once, for as long as asked."""
        # The time before this is none of the run's.
        self.began, self.began_by = time.time(), time.monotonic()
        self.tally.began = self.began
        self.sampler.start()
        self.world.load.start()
        self.faults.run(self.options.seconds)
        self.result.seconds = round(self.clock(), 1)
        self.world.end_load()

    def drain(self):
        """Everything committed has to be delivered, and every node to end in order."""
        database = self.world.database
        try:
            wait_until("all is delivered", lambda: safely(lambda: database.pending() == 0), DRAIN, 0.5)
        except ChaosError as error:
            self.result.problems.append(str(error))
        self.sampler.close()
        self.world.stop_nodes()
        self.world.stream.close()
        self.fleet.check()

    def judge(self):
        table = ((row.event_id, row.status) for row in self.world.database.rows())
        verdict = self.tally.verdict(table)
        for name in ("events", "duplicates"):
            setattr(self.result, name, getattr(verdict, name))
        for name in verdict.FINDINGS:
            setattr(self.result, name, len(getattr(verdict, name)))
        self.result.arrived = self.tally.arrived
        if not verdict.passed():
            self.result.problems.append(verdict.summary())
        self.save("faults.json", [fault.as_dict() for fault in self.faults.log])
        self.save("repeated.json", self.tally.repeated)
        figures.add(self.result, self.sampler.all, self.faults.log, self.tally.repeated)

    def save(self, name, value):
        (self.folder / name).write_text(json.dumps(value) + "\n")

    def keep_logs(self):
        for log in Path(self.world.folder).glob("*.log"):
            shutil.copy(log, self.folder)
        if self.world.database is not None and Path(self.world.database.log).exists():
            shutil.copy(self.world.database.log, self.folder / "database.log")


def version():
    done = subprocess.run([relay.program(), "--version"], capture_output=True, text=True, timeout=20)
    return done.stdout.strip()
