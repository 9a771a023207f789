"""The results of many runs, and the Markdown tables that they make."""

import json
import os
import re
import tempfile
from pathlib import Path

from chaos.faults import FAULTS

COLUMNS = ("Fault", "Store", "Mode", "Runs", "Failed", "Events", "Lost", "Invented", "Stuck", "Out of order", "Duplicates",
           "First arrival, s", "Backlog gone, s", "Measured")
HEAD = f"| {' | '.join(COLUMNS)} |\n|---|---|---|{'---:|' * 10}---|\n"


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
        file.write(json.dumps(row) + "\n")
    write(markdown, read(lines))


def write(markdown, cells):
    """Writes the tables: into the places that a page marks for them, or else as the whole file."""
    tables = {"faults": faults(), "runs": table(cells)}
    page = markdown.read_text() if markdown.exists() else ""
    if "<!-- chaos:runs -->" in page:
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
    """The runs by their cells, in the order of the matrix."""
    order = [fault.name for fault in FAULTS]
    cells = {}
    with open(lines) as file:
        for line in file:
            row = json.loads(line)
            cells.setdefault(row["cell"], []).append(row)
    return dict(sorted(cells.items(), key=lambda cell: order.index(cell[0].split("/")[0])
                       if cell[0].split("/")[0] in order else len(order)))


def table(cells):
    """
    >>> run = {"cell": "kill-node/sqlite/ordered", "passed": True, "events": 7, "lost": 0, "invented": 0, "stuck": 0,
    ...        "out_of_order": 0, "duplicates": 2, "first_arrival": 3.1, "backlog_gone": 4.0, "figures": {}}
    >>> print(table({run["cell"]: [run, run]}).splitlines()[-1])
    | kill-node | sqlite | ordered | 2 | 0 | 14 | 0 | 0 | 0 | 0 | 4 | 3.1 | 4.0 |  |
    """
    return HEAD + "".join(line(cell, rows) for cell, rows in cells.items())


def line(cell, rows):
    fault, store, mode = cell.split("/")
    runs = [row for row in rows if "skipped" not in row]
    if not runs:
        return f"| {fault} | {store} | {mode} | 0 | | | | | | | | | | not run: {rows[-1]['skipped']} |\n"

    def total(name):
        return sum(row[name] for row in runs)

    def most(name):
        return max((row[name] for row in runs if row[name] is not None), default="")

    figures = ", ".join(f"{name} {' / '.join(str(row['figures'].get(name)) for row in runs)}"
                        for name in runs[0]["figures"])
    failed = sum(not row["passed"] for row in runs)
    counts = [total(name) for name in ("events", "lost", "invented", "stuck", "out_of_order", "duplicates")]
    values = [fault, store, mode, len(runs), failed, *counts, most("first_arrival"), most("backlog_gone"), figures]
    return "| " + " | ".join(map(str, values)) + " |\n"
