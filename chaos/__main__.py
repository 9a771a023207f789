"""The command line."""

import argparse
import json
import os
import signal
import sys

from chaos import course, jobs, report, self_test
from chaos.cells import all_cells, matching
from chaos.processes import ChaosError
from chaos.relay import build, program
from chaos.servers.tools import postgres18, remove_copies

USAGE = """A chaos matrix: faults of nodes, databases, networks and brokers under load, with a checker outside of the relay.

  scripts/chaos --list                         the cells
  scripts/chaos CELL… [--runs N] [--json]      runs cells, such as kill-node/postgres15/partitioned or 'kill-*/sqlite/*': all of
                                               them once, then all again; --jobs J runs J at a time, but those that measure alone
  scripts/chaos --report PATH [CELL…]          runs cells (all without names), and writes the table to a Markdown file, or to
                                               chaos.md in a folder; runs that stand there count, if they are of the same commit, and
                                               cells with the fewest runs come first
  scripts/chaos --self-test                    shows that the checker finds what it looks for

PILLARBOX=PROGRAM tests another program than target/release/pillarbox, OLD=PROGRAM is the release before it, for the cells
that run two. Runs are recorded under the commit of the tree, or what CHAOS_BUILD says; with PILLARBOX a report asks for CHAOS_BUILD.
Servers are private, and gone afterwards. Exit code 1: a run failed; 2: the command line is wrong."""


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=USAGE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("cells", nargs="*", metavar="CELL")
    parser.add_argument("--list", action="store_true", help="print the cells")
    parser.add_argument("--runs", type=positive, default=1, help="runs of each cell; 1")
    parser.add_argument("--jobs", type=positive, default=1, help="runs at a time; 1")
    parser.add_argument("--rate", type=positive, default=500, help="events a second; 500")
    parser.add_argument("--json", action="store_true", help="print an object for each run")
    parser.add_argument("--report", metavar="PATH", help="write the table there")
    parser.add_argument("--self-test", action="store_true", help="test the checker")
    return parser, parser.parse_args()


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def line(result):
    measured = {"longest_gap_s": result.longest_gap, "backlog_gone_s": result.backlog_gone, **result.figures}
    figures = "".join(f", {name} {value}" for name, value in measured.items() if value is not None)
    verdict = "passed" if result.passed else "FAILED: " + "; ".join(result.problems)
    counted = "not checked" if result.events is None else f"{result.events} events, {result.duplicates} duplicates"
    return f"{result.cell}: {verdict} ({counted}{figures}; {result.seconds} s)"


def run_all(cells, options):
    """Runs each cell as often as it has to; true if all of them passed."""
    this, failed = build(), []

    def take(result):
        result.build = this
        print(json.dumps(result.as_dict()) if options.json else line(result), flush=True)
        if options.report:
            report.add(options.report, result)
        if not result.passed:
            failed.append(result.cell)

    cells = [cell for cell in cells if is_available(cell, options)]
    if not cells:
        raise ChaosError("none of these cells can be run here")
    if any(cell.store == "postgres18" for cell in cells):
        # Made once, for all runs.
        postgres18()
    for some in report.rounds(cells, options.runs, options.report, this):
        jobs.run_all(some, options.jobs, take, lambda cell: course.run(cell, options.rate))
    return not failed


def is_available(cell, options):
    why = cell.fault().unavailable()
    if why:
        print(f"{cell}: not run: {why}", file=sys.stderr, flush=True)
        if options.report:
            report.add_skipped(options.report, cell, why)
    return not why


def main():
    parser, options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.self_test:
        return self_test.run()
    if options.list:
        print("\n".join(map(str, all_cells())))
        return 0
    if not options.cells and not options.report:
        parser.print_help()
        return 2
    cells = matching(options.cells or ["*"])
    if not cells:
        print(f"error: no cell matches {' '.join(options.cells)}; see --list", file=sys.stderr)
        return 2
    try:
        program()
        if options.report and os.environ.get("PILLARBOX") and not os.environ.get("CHAOS_BUILD"):
            raise ChaosError("a report names the commit of each run: say by CHAOS_BUILD of which commit PILLARBOX is")
        return 0 if run_all(cells, options) else 1
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
