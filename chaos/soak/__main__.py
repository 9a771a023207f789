"""The command line."""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from chaos.processes import ChaosError
from chaos.relay import ROOT
from chaos.servers.tools import remove_copies
from chaos.soak.course import Result, Soak
from chaos.soak.figures import LONG_ENOUGH, RECORDS

USAGE = """A soak: nodes under a steady load for an hour, random faults, and a watch on all that may grow.

  scripts/soak [--plot SVG] [--json]          four nodes, 2,000 events a second, PostgreSQL 15, an hour
  scripts/soak --seconds 240 --retention 30   a short one

Relays run by a file: they deliver to Redis, and purge delivered events. The samples, faults, logs and the summary go to --out.
PILLARBOX=PROGRAM tests another program than target/release/pillarbox. Exit code 1: something was lost, invented, stuck, out of
order, delivered twice without a fault that explains it, or, in a run that is long enough to tell, grew by more than its bound;
2: the command line is wrong."""

STORES = ("postgres15", "postgres18", "mariadb")
MODES = ("single_node", "multi_node", "partitioned", "ordered")


class Options(argparse.Namespace):
    def warm_up(self):
        """Seconds until the table is as large as it gets: the first events have been purged."""
        return self.retention + 2 * self.purge_interval


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=USAGE, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=STORES, default="postgres15", help="postgres15")
    parser.add_argument("--mode", choices=MODES, default="partitioned", help="partitioned")
    parser.add_argument("--nodes", type=int, default=4, help="relays, two at least; 4")
    parser.add_argument("--seconds", type=int, default=3600, help="3600")
    parser.add_argument("--rate", type=int, default=2000, help="committed events a second; 2000")
    parser.add_argument("--seed", type=int, default=1, help="of the faults; 1")
    parser.add_argument("--gap", type=float, nargs=2, default=(20, 60), metavar=("MIN", "MAX"),
                        help="seconds from the end of a fault to the next; 20 60")
    parser.add_argument("--lease", type=int, default=5, help="seconds; 5")
    parser.add_argument("--retention", type=int, default=300, help="seconds for which delivered events are kept; 300")
    parser.add_argument("--purge-interval", type=int, default=15, help="seconds; 15")
    parser.add_argument("--writers", type=int, default=4, help="connections of the load; one in mode ordered; 4")
    parser.add_argument("--rows", type=int, default=50, help="events in a transaction; 50")
    parser.add_argument("--keys", type=int, default=200, help="keys of each writer; 200")
    parser.add_argument("--out", default=str(ROOT / "target" / "soak"), help="target/soak")
    parser.add_argument("--plot", metavar="SVG", help="draw the plot there; installs matplotlib into target/soak-venv")
    parser.add_argument("--again", metavar="FOLDER", help="run nothing: judge and draw a run anew from what it left in --out")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--check-arguments", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(namespace=Options())
    if options.again:
        missing = [name for name in RECORDS if not (Path(options.again) / name).is_file()]
        if missing:
            parser.error(f"argument --again: {options.again} is no folder of a run: {', '.join(missing)} is not there")
        return options
    if options.nodes < 2:
        parser.error("argument --nodes: two at least")
    if options.warm_up() >= options.seconds:
        parser.error(f"argument --seconds: more than {options.warm_up()}, which the table needs to fill: "
                     "--retention, and twice --purge-interval")
    return options


def text(result):
    """The summary for people."""
    lines = [f"{result.cell}: {'passed' if result.passed() else 'FAILED'} ({result.seconds:.0f} s, seed {result.seed}, "
             f"{result.events} events, {result.duplicates} duplicates)"]
    lines += [f"  {problem}" for problem in result.problems]
    lines += [f"  {kind}: {found['struck']} times, {found['duplicates']} duplicates, slowest event {found['slowest_s']} s, "
              f"backlog gone after {found['backlog_gone_s']} s, or not before the next fault: {found['overtaken']}"
              for kind, found in result.faults.items()]
    lines += [f"  {trend['name']}: {trend['first']} / {trend['middle']} / {trend['last']} {trend['unit']}"
              for trend in result.trends]
    if not result.growth_is_judged():
        lines.append(f"  too short to say whether anything grows: that takes {LONG_ENOUGH} s after the table has filled")
    return "\n".join(lines)


def draw(folder, svg):
    python = ROOT / "target" / "soak-venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "chaos.soak.plot", str(folder), str(svg)], check=True, cwd=ROOT,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})


def main():
    options = arguments()
    if options.check_arguments:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        folder = Path(options.again or options.out)
        result = Result.again(folder) if options.again else Soak(options, folder).run()
        print(json.dumps(vars(result)) if options.json else text(result), flush=True)
        if options.plot and (folder / "faults.json").exists():
            draw(folder, options.plot)
        return 0 if result.passed() else 1
    except ChaosError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        remove_copies()


if __name__ == "__main__":
    sys.exit(main())
