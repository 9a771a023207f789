"""The results of many runs, and the Markdown tables that they make."""

import fcntl
import json
import os
import re
import tempfile
from pathlib import Path

from chaos.cells import all_cells
from chaos.faults import FAULTS

#: How many runs a cell should have, of which the tables show the last, and the build of runs that do not tell it.
RUNS, UNKNOWN = 3, "older"
COLUMNS = ("Fault", "Store", "Mode", "Commit", "Runs", "Failed", "Events", "Lost", "Invented", "Stuck", "Out of order",
           "Duplicates", "Longest gap, s", "Backlog gone, s", "Measured")
HEAD = f"| {' | '.join(COLUMNS)} |\n|---|---|---|---|{'---:|' * 10}---|\n"


FAULTS_HEAD = """| Fault | What happens | Why events may arrive twice |
|---|---|---|
"""


def files(path):
    """The Markdown file and the JSON lines beside it."""
    path = Path(path)
    markdown = path if path.suffix == ".md" else path / "chaos.md"
    markdown.parent.mkdir(parents=True, exist_ok=True)
    return markdown, markdown.with_suffix(".jsonl")


def add(path, result):
    """Adds a run, and writes the table anew."""
    append(path, result.as_dict())


def add_skipped(path, cell, why):
    append(path, {"cell": str(cell), "skipped": why})


def append(path, row):
    markdown, lines = files(path)
    with open(lines, "a") as file:
        # Another command may add to the same report.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(row) + "\n")
        file.flush()
        write(markdown, read(lines))


def rounds(cells, runs, path, build):
    """The cells of each round until all have so many runs of the build: those with the fewest recorded runs first.

    >>> list(rounds(["a", "b"], 2, None, "bc48f81"))
    [['a', 'b'], ['a', 'b']]
    """
    rows = [row for row in recorded(files(path)[1]) if "skipped" not in row] if path else []
    done = {cell: [row.get("build") for row in rows if row["cell"] == str(cell)] for cell in cells}
    cells = sorted(cells, key=lambda cell: len(done[cell]))
    for number in range(runs):
        yield [cell for cell in cells if done[cell].count(build) <= number]


def write(markdown, cells):
    """Writes the tables: into the places that a page marks for them, or else as the whole file."""
    page = markdown.read_text() if markdown.exists() else ""
    is_marked = "<!-- chaos:runs -->" in page
    if is_marked:
        # A page shows the whole matrix.
        cells = {**{str(cell): [{"skipped": "not yet"}] for cell in all_cells()}, **cells}
    tables = {"faults": faults(), "summary": summary(cells), "runs": table(cells)}
    if is_marked:
        for name, text in tables.items():
            page = re.sub(f"(<!-- chaos:{name} -->\n).*?(<!-- chaos:end -->)", lambda found: found[1] + text + found[2], page,
                          flags=re.DOTALL)
    else:
        page = "\n".join(tables.values())
    with tempfile.NamedTemporaryFile("w", dir=markdown.parent, delete=False) as new:
        new.write(page)
    os.chmod(new.name, 0o644)
    os.replace(new.name, markdown)


def faults():
    """The table of the faults."""
    return FAULTS_HEAD + "".join(f"| `{fault.name}` | {fault.summary} | {fault.duplicates or 'they must not'} |\n"
                                 for fault in FAULTS)


def read(lines):
    """The last runs of each cell, in the order of the matrix."""
    order, cells = {str(cell): number for number, cell in enumerate(all_cells())}, {}
    for row in recorded(lines):
        cells.setdefault(row["cell"], []).append(row)
    return dict(sorted(((cell, latest(rows)) for cell, rows in cells.items()),
                       key=lambda cell: order.get(cell[0], len(order))))


def latest(rows):
    """
    >>> latest([{"build": number} for number in range(4)] + [{"skipped": "no disk"}])
    [{'build': 1}, {'build': 2}, {'build': 3}]
    """
    return [row for row in rows if "skipped" not in row][-RUNS:] or rows


def recorded(lines):
    if not lines.exists():
        return []
    with open(lines) as file:
        return [json.loads(line) for line in file]


def summary(cells):
    """
    >>> run = {"cell": "kill-node/sqlite/ordered", "passed": True, "build": "bc48f81", "beside": 4}
    >>> print(summary({run["cell"]: [run, {**run, "passed": False}]}), end="")
    2 runs of 1 cell: 1 passed, 1 failed. Commit bc48f81; up to 4 runs at a time. Payloads were compared and the fault confirmed in 0 of them. 1 cell has fewer than 3 runs.
    """
    runs = [row for rows in cells.values() for row in rows if "skipped" not in row]
    passed = sum(row["passed"] for row in runs)
    few = sum(len([row for row in rows if "skipped" not in row]) < RUNS for rows in cells.values())
    # Both checks came with the same change.
    complete = sum("changed" in row for row in runs)
    return (f"{some(len(runs), 'run')} of {some(len(cells), 'cell')}: {passed:,} passed, {len(runs) - passed:,} failed. "
            f"Commit {commits(runs)}; up to {max((row.get('beside', 1) for row in runs), default=1)} runs at a time. "
            f"Payloads were compared and the fault confirmed in {complete:,} of them."
            + (f" {some(few, 'cell')} {'has' if few == 1 else 'have'} fewer than {RUNS} runs." if few else "") + "\n")


def commits(runs):
    """
    >>> commits([{"build": "bc48f81"}, {"build": "de7a562"}, {"build": "de7a562"}])
    'bc48f81, de7a562'
    """
    return ", ".join(dict.fromkeys(row.get("build", UNKNOWN) for row in runs))


def some(count, noun):
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(cells):
    """
    >>> run = {"cell": "kill-node/sqlite/ordered", "passed": True, "events": 7, "lost": 0, "invented": 0, "stuck": 0,
    ...        "out_of_order": 0, "duplicates": 2, "longest_gap": 3.1, "backlog_gone": 4.0, "figures": {}}
    >>> print(table({run["cell"]: [run, run]}).splitlines()[-1])
    | kill-node | sqlite | ordered | older | 2 | 0 | 14 | 0 | 0 | 0 | 0 | 4 | 3.1 | 4.0 |  |
    >>> broken_off = {**run, "passed": False, **dict.fromkeys(("events", "lost", "invented", "stuck", "out_of_order", "duplicates"))}
    >>> print(table({run["cell"]: [broken_off]}).splitlines()[-1])
    | kill-node | sqlite | ordered | older | 1 | 1 | not checked | not checked | not checked | not checked | not checked | not checked | 3.1 | 4.0 |  |
    """
    return HEAD + "".join(line(cell, rows) for cell, rows in cells.items())


def line(cell, rows):
    fault, store, mode = cell.split("/")
    if "skipped" in rows[-1]:
        return f"| {fault} | {store} | {mode} | | 0 | | | | | | | | | | not run: {rows[-1]['skipped']} |\n"

    def total(name):
        counts = [row[name] for row in rows if row[name] is not None]
        return sum(counts) if counts else "not checked"

    def most(name):
        return max((row[name] for row in rows if row[name] is not None), default="")

    figures = ", ".join(f"{name} {' / '.join(str(row['figures'].get(name)) for row in rows)}"
                        for name in rows[0]["figures"])
    failed = sum(not row["passed"] for row in rows)
    counts = [total(name) for name in ("events", "lost", "invented", "stuck", "out_of_order", "duplicates")]
    values = [fault, store, mode, commits(rows), len(rows), failed, *counts, most("longest_gap"), most("backlog_gone"), figures]
    return "| " + " | ".join(map(str, values)) + " |\n"
