"""The plot of a soak, by matplotlib: python -m chaos.soak.plot FOLDER SVG, with the samples and the faults in the folder."""

import json
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

from chaos.soak.flatness import value_of  # noqa: E402

#: Points of a curve at most; each is the highest or the middle value of the samples that it stands for.
POINTS = 360
COLORS = {
    "kill-node": "#d62728", "pause-node": "#ff9896", "restart-database": "#1f77b4", "kill-database": "#17375e",
    "cut": "#9467bd", "stall": "#8c564b", "stall-one-node": "#c49c94", "one-way-cut": "#e377c2", "held-snapshot": "#2ca02c",
}
INK, SOFT = "#222222", "#9a9a9a"
STYLE = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Arial"], "font.size": 8,
    "axes.titlesize": 8.5, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#e6e6e6", "lines.linewidth": 1, "svg.hashsalt": "soak", "path.simplify_threshold": 0.3,
}


def thinned(samples, column, pick):
    """Minutes and values; None stays a gap."""
    step = max(1, -(-len(samples) // POINTS))
    minutes, values = [], []
    for start in range(0, len(samples), step):
        part = samples[start:start + step]
        found = sorted(value for value in (column(sample) for sample in part) if value is not None)
        minutes.append(part[-1]["t"] / 60)
        values.append(float("nan") if not found else found[-1] if pick == "highest" else found[len(found) // 2])
    return minutes, values


class Figure:
    def __init__(self, samples, faults):
        self.samples, self.faults = samples, faults
        pyplot.rcParams.update(STYLE)
        self.figure, axes = pyplot.subplots(5, 2, figsize=(10, 11.5), sharex=True)
        self.axes = iter(axes.flat)
        self.end = samples[-1]["t"] / 60

    def panel(self, title, curves, *, log=False):
        """A panel; curves are (label, column, colour, pick)."""
        axes = next(self.axes)
        axes.set_title(title)
        for label, column, color, pick in curves:
            read = column if callable(column) else lambda sample: value_of(sample, column)
            axes.plot(*thinned(self.samples, read, pick), color=color, label=label)
        if log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlim(0, self.end)
        self.mark(axes)
        if len(curves) > 1:
            axes.legend(loc="upper right", fontsize=7, ncols=len(curves), framealpha=0.8, edgecolor="none", borderpad=0.2,
                        handlelength=1.2, columnspacing=1)
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * 8 if log else high * 1.15)

    def mark(self, axes):
        """A line for each fault; those of a kind are one path."""
        for kind, color in COLORS.items():
            minutes = [x for fault in self.faults if fault["kind"] == kind for x in (fault["began"] / 60,) * 2 + (float("nan"),)]
            heights = [0.0, 1.0, float("nan")] * (len(minutes) // 3)
            axes.plot(minutes, heights, color=color, linewidth=0.6, alpha=0.55, zorder=0, transform=axes.get_xaxis_transform())

    def save(self, path):
        for axes in self.figure.axes[-2:]:
            axes.set_xlabel("minutes")
        handles = [pyplot.Line2D([], [], color=color, linewidth=1.5, label=kind) for kind, color in COLORS.items()
                   if any(fault["kind"] == kind for fault in self.faults)]
        self.figure.legend(handles=handles, loc="lower center", ncols=len(handles), fontsize=7, frameon=False, handlelength=1,
                           columnspacing=1.2)
        self.figure.tight_layout(rect=(0, 0.025, 1, 1), h_pad=0.6)
        self.figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")
        # Tenths of a point are more than enough.
        text = Path(path).read_text()
        Path(path).write_text(re.sub(r"(?<=[ \"(,-])(\d+\.\d)\d+", r"\1", text))


def rate(name):
    """The growth of a counter in a second."""
    before = {}

    def read(sample):
        last, before["value"] = before.get("value"), sample[name]
        return None if last is None else (sample[name] - last) / sample["seconds"]
    return read


def draw(samples, faults, path):
    figure = Figure(samples, faults)
    slots = len(samples[0]["rss"])
    shades = [INK, "#5b8db8", "#e0a458", "#7fb069", "#b07aa1", "#76b7b2"]

    def of(name):
        return [("all the time" if slot == 0 else f"slot {slot + 1}", lambda sample, slot=slot: sample[name][slot],
                 shades[slot % len(shades)], "middle") for slot in reversed(range(slots))][::-1]
    figure.panel("Memory of each node, MiB", of("rss"))
    figure.panel("File descriptors of each node", of("fds"))
    figure.panel("Table and indexes, MiB", [("table", "table", INK, "middle"), ("indexes", "indexes", "#5b8db8", "middle")])
    figure.panel("Rows, as the database counts them", [("live", "live", INK, "middle"), ("dead", "dead", "#d1495b", "middle")])
    figure.panel("Pending events", [("", "pending", INK, "highest")])
    figure.panel("Latency from commit to arrival, ms", [
        ("maximum", "latency_max", "#d9d9d9", "highest"), ("99 %", "latency_p99", "#e0a458", "middle"),
        ("median", "latency_p50", INK, "middle")], log=True)
    figure.panel("Events a second", [("committed", rate("committed"), SOFT, "middle"), ("arrived", rate("arrived"), INK, "middle")])
    figure.panel("Repeated arrivals so far", [("", "repeated", INK, "highest")])
    figure.panel("CPU, cores", [("relays", "cpu_relays", INK, "middle"), ("database", "cpu_database", "#5b8db8", "middle")])
    figure.panel("The machine's load average, others included", [("", "load", SOFT, "middle")])
    figure.save(path)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with open(folder / "samples.jsonl") as file:
        lines = [json.loads(line) for line in file]
    draw(lines, json.loads((folder / "faults.json").read_text()), sys.argv[2])
