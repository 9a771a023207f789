"""The course of one run: arrange, load, strike, recover, check."""

import os
import shutil
import subprocess
import time
import traceback
from dataclasses import asdict, dataclass, field

from chaos.checker import check
from chaos.processes import ChaosError, wait_until
from chaos.world import World

ORDER = {"partitioned": "key", "ordered": "table"}
STEADY = 300


@dataclass
class Result:
    """One run of one cell."""

    cell: str
    passed: bool = False
    #: What the checker counted; None if the run broke off before it.
    events: int | None = None
    lost: int | None = None
    invented: int | None = None
    stuck: int | None = None
    dead: int | None = None
    out_of_order: int | None = None
    changed: int | None = None
    duplicates: int | None = None
    lost_by_database: int | None = None
    #: Seconds: from the end of the fault to the next arrival, and to the last arrival of what was committed by then; and
    #: the longest time without any arrival from the beginning of the fault on.
    first_arrival: float | None = None
    backlog_gone: float | None = None
    longest_gap: float | None = None
    seconds: float = 0.0
    #: The commit of the program, and how many runs there were at a time.
    build: str = ""
    beside: int = 1
    figures: dict = field(default_factory=dict)
    #: What failed, in words.
    problems: list = field(default_factory=list)

    def take(self, verdict):
        for name in verdict.FINDINGS:
            setattr(self, name, len(getattr(verdict, name)))
        self.events, self.duplicates = verdict.events, verdict.duplicates
        self.lost_by_database = verdict.lost_by_database
        if not verdict.passed():
            self.problems.append(verdict.summary())

    def as_dict(self):
        return asdict(self)


def run(cell, rate=500):
    """Runs a cell once. Whatever happens, the servers of the run are gone afterwards."""
    fault = cell.fault()
    result, began = Result(str(cell)), time.monotonic()
    world = World(cell, fault, rate=rate)
    try:
        fault.course(world, result)
        result.passed = not result.problems
    except (ChaosError, OSError, subprocess.SubprocessError, LookupError, ValueError, TypeError, AttributeError) as error:
        result.problems.append(f"{type(error).__name__}: {error}")
        world.say(traceback.format_exc())
    finally:
        if result.problems:
            keep_evidence(world, result)
        world.close()
    result.seconds = round(time.monotonic() - began, 1)
    return result


def under_load(fault, world, result):
    """The course of most cells: the load goes on from before the fault until after the recovery."""
    fault.arrange(world)
    world.watch()
    for _ in range(fault.nodes):
        world.start_node()
    world.begin_load(**fault.load)
    fault.wait_until_steady(world)
    world.say("strikes")
    world.earlier_errors = world.load.errors
    struck = time.monotonic()
    fault.strike(world)
    ended = time.monotonic()
    world.say("the fault is over")
    measure_recovery(fault, world, result, struck, ended)
    world.pause(1)
    world.end_load()
    settle(fault, world, result)
    world.stop_nodes()
    world.arrivals.stop()
    judge(fault, world, result)
    result.figures.update(fault.figures(world))


def measure_recovery(fault, world, result, struck, ended):
    """Waits until what was committed during the fault is delivered."""
    highest = wait_until("the database answers", lambda: safely(world.database.highest), 60, 0.2)
    try:
        wait_until("the backlog is gone", lambda: safely(lambda: world.database.pending(highest) == 0), fault.recovery, 0.1)
        result.backlog_gone = round(time.monotonic() - ended, 1)
    except ChaosError as error:
        result.problems.append(str(error))
    if world.arrivals.count():
        first = world.arrivals.first_after(ended)
        result.first_arrival = None if first is None else round(first, 1)
        result.longest_gap = round(world.arrivals.longest_gap(struck, time.monotonic()), 1)


def settle(fault, world, result):
    try:
        wait_until("all is delivered", lambda: safely(lambda: world.database.pending() == 0), fault.recovery, 0.2)
    except ChaosError as error:
        result.problems.append(str(error))


def judge(fault, world, result):
    arrived = fault.arrivals(world)
    world.save("arrivals.ids", (arrival.event_id for arrival in arrived))
    verdict = check(world.load.written, world.database.rows(), arrived, ORDER.get(world.cell.mode),
                    fault.database_may_lose)
    result.take(verdict)
    if verdict.duplicates and not fault.duplicates:
        result.problems.append(f"{verdict.duplicates} duplicates, which this fault does not explain")
    if world.arrivals.broken and not fault.lines_may_break:
        result.problems.append(f"{world.arrivals.broken} broken lines, which this fault does not explain")
    if reason := fault.evidence(world, verdict):
        result.problems.append(f"the fault may not have struck: {reason}")
    if fault.allowed_gap is not None and result.longest_gap is not None and result.longest_gap > fault.allowed_gap:
        result.problems.append(f"nothing arrived for {result.longest_gap} s, {fault.allowed_gap} are allowed")
    world.say(verdict.summary())


def safely(ask):
    """The answer, or None while the database does not give one."""
    try:
        return ask()
    except (ChaosError, subprocess.SubprocessError):
        return None


def keep_evidence(world, result):
    """Copies logs of a failed run to where they can be read afterwards, in a folder with the name of the run's own."""
    name = f"{result.cell.replace('/', '.')}.{world.folder.rpartition('.')[2]}"
    folder = os.path.join(os.environ.get("CHAOS_EVIDENCE", "target/chaos-evidence"), name)
    try:
        os.makedirs(folder, exist_ok=True)
        for node in world.nodes:
            if node.port and node.is_alive():
                world.save(f"{node.name}.status.log", (node.page(path)[1] for path in ("/status", "/metrics")))
        for name in os.listdir(world.folder):
            if name.endswith((".log", ".toml", ".jsonl", ".ids")):
                shutil.copy(world.path(name), folder)
        if world.database is not None and os.path.exists(getattr(world.database, "log", "")):
            shutil.copy(world.database.log, os.path.join(folder, "database.log"))
        with open(os.path.join(folder, "problems.txt"), "w") as file:
            file.write("\n".join(result.problems) + "\n")
            if world.database is not None:
                left = [row for row in safely(world.database.rows) or [] if row.status != 1]
                file.writelines(f"{row}\n" for row in left[:200])
    except (OSError, ChaosError, subprocess.SubprocessError):
        pass
