// Pillarbox console: plots, copied commands, times, and whether the page is live. Without it every page works, but stands still.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const store = (key, value) => { try { localStorage.setItem(key, value); } catch { /* a browser that keeps nothing */ } };

  // Times: relative or absolute, as the reader likes.
  const times = document.querySelector("[data-times]");
  const showTimes = (absolute) => {
    root.classList.toggle("absolute", absolute);
    times?.setAttribute("aria-pressed", String(absolute));
  };
  showTimes(stored("pillarbox-times") === "absolute");
  if (times) {
    times.hidden = false;
    times.addEventListener("click", () => {
      const absolute = !root.classList.contains("absolute");
      store("pillarbox-times", absolute ? "absolute" : "relative");
      showTimes(absolute);
    });
  }

  // Live: a page that nobody sees asks nothing, and text that is marked stays marked.
  const live = document.querySelector("[data-live]");
  let isLive = true;
  if (live) {
    live.hidden = false;
    live.addEventListener("click", () => {
      isLive = !isLive;
      live.setAttribute("aria-pressed", String(isLive));
    });
  }
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isLive || document.hidden || !window.getSelection().isCollapsed) event.preventDefault();
  });
  if (window.Idiomorph) {
    const { callbacks } = window.Idiomorph.defaults;
    // What is unfolded stays so, and a form keeps the words that are being written into it.
    callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.matches("details"));
    callbacks.beforeNodeMorphed = (node) => !node.matches?.("details.action[open]");
  }
  const warn = (lost) => root.classList.toggle("lost", lost);
  document.addEventListener("htmx:sendError", () => warn(true));
  document.addEventListener("htmx:timeout", () => warn(true));
  document.addEventListener("htmx:responseError", () => warn(true));
  document.addEventListener("htmx:afterOnLoad", () => warn(false));

  // Forms that send themselves when something is chosen.
  for (const field of document.querySelectorAll("[data-submit]")) {
    field.addEventListener("change", () => field.form.requestSubmit());
  }
  for (const button of document.querySelectorAll(".nojs")) button.hidden = true;

  // Commands that are copied.
  const prepare = () => { for (const button of document.querySelectorAll("[data-copy][hidden]")) button.hidden = false; };
  prepare();
  document.addEventListener("htmx:afterSettle", prepare);
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const text = button.parentElement.querySelector("code");
      window.getSelection().selectAllChildren(text);
      document.execCommand("copy");
      window.getSelection().removeAllRanges();
    }
    const before = button.firstChild.textContent;
    button.firstChild.textContent = "Copied";
    setTimeout(() => { button.firstChild.textContent = before; }, 1500);
  });

  // Plots of the last hour.
  const section = document.querySelector("[data-series]");
  if (!section || !window.uPlot) return;
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const lines = {
    rate: [["rate", "delivered", "--good"], ["failures", "failed", "--bad"]],
    lag: [["lag", "seconds", "--warn"]],
    latency: [["p50", "median", "--accent"], ["p99", "99 %", "--warn"]],
    due: [["due", "due", "--accent"]],
    dead: [["dead", "DEAD", "--bad"]],
  };
  const plots = new Map();
  const width = (place) => Math.max(place.clientWidth, 200);
  const make = (name, place) => {
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: "11px system-ui, sans-serif" };
    return new uPlot({
      width: width(place), height: 150, tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
      legend: { live: true }, cursor: { sync: { key: "console" }, y: false },
      // Ten minutes at least, so that each mark of the time is another minute.
      scales: { x: { range: (_, low, high) => [Math.min(low ?? Infinity, (high ?? Date.now() / 1e3) - 600), high ?? Date.now() / 1e3] }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, name === "latency" ? 0.001 : 1) * 1.1] } },
      axes: [{ ...axis, size: 28, space: 70, values: "{HH}:{mm}" }, { ...axis, size: 56, values: (_, marks) => marks.map((mark) => Number(mark.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 })) }],
      series: [{ label: "UTC", value: "{HH}:{mm}:{ss}" }, ...lines[name].map(([, label, stroke]) => ({
        label, stroke: color(stroke), width: 1.5, spanGaps: false, points: { show: false },
        value: (_, value) => value == null ? "–" : Number(value.toFixed(2)).toLocaleString("en"),
      }))],
    }, [[], ...lines[name].map(() => [])], place);
  };
  const draw = (series) => {
    for (const name of Object.keys(lines)) {
      const place = document.getElementById("plot-" + name);
      if (!place) continue;
      if (!plots.has(name)) plots.set(name, make(name, place));
      plots.get(name).setData([series.at, ...lines[name].map(([column]) => series[column])]);
    }
  };
  const load = async () => {
    if (document.hidden || !isLive) return;
    try {
      const answer = await fetch(section.dataset.series, { headers: { accept: "application/json" } });
      if (answer.ok) draw(await answer.json());
    } catch { /* the next one may come */ }
  };
  load();
  setInterval(load, 5000);
  window.addEventListener("resize", () => {
    for (const [name, plot] of plots) plot.setSize({ width: width(document.getElementById("plot-" + name)), height: 150 });
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const plot of plots.values()) plot.destroy();
    plots.clear();
    load();
  });
})();
