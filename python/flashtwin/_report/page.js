// The page of a report: which charts there are, light and dark, print, tables that sort.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const SYSTEM_DARK = matchMedia("(prefers-color-scheme: dark)");
const PALETTES = {
  light: { ink: "#1d2430", faint: "#5c6675", line: "#d9dee6", ground: "#ffffff",
    colours: ["#0b5cad", "#c8421f", "#12805c", "#a8559b", "#b07d00", "#4b5563", "#1aa0b8", "#7a4a12"],
    heat: ["#eef3f8", "#f6c667", "#d1495b", "#5b1a3a"] },
  dark: { ink: "#e4e8ee", faint: "#9aa5b4", line: "#323b48", ground: "#1a2029",
    colours: ["#6db3f2", "#ff8a65", "#5fd0a5", "#d59bd0", "#e8c15a", "#aab4c0", "#6fdcec", "#d0a071"],
    heat: ["#212a35", "#8a5a1c", "#e0653f", "#ffe08a"] },
};
const drawn = [];

// Adds a card with a chart; `build` makes its options from a palette.
function card(id, title, note, build, { wide = false, height = 0, canvas = false, link = false, into = null } = {}) {
  const section = document.createElement("section");
  section.className = wide ? "card wide" : "card";
  const [h2, chart, p] = ["h2", "div", "p"].map((tag) => document.createElement(tag));
  h2.textContent = title;
  chart.className = "chart";
  chart.id = `chart-${id}`;
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", title);
  if (height) chart.style.height = `${height}px`;
  p.className = "note";
  p.textContent = note;
  section.append(h2, chart, p);
  (into ?? document.getElementById("charts")).append(section);
  drawn.push({ chart, build, renderer: canvas ? "canvas" : "svg", link, instance: null });
}

function draw(those = drawn) {
  const dark = SYSTEM_DARK.matches && !document.documentElement.classList.contains("print");
  const palette = PALETTES[dark ? "dark" : "light"];
  const axis = { axisLine: { lineStyle: { color: palette.faint } }, axisLabel: { color: palette.faint },
    nameTextStyle: { color: palette.faint }, splitLine: { lineStyle: { color: palette.line } } };
  for (const each of those) {
    each.instance?.dispose();
    each.instance = echarts.init(each.chart, null, { renderer: each.renderer, devicePixelRatio: 2 });
    const options = each.build(palette, dark);
    for (const key of ["xAxis", "yAxis"]) {
      const own = options[key];
      options[key] = { ...axis, ...own, axisLabel: { ...axis.axisLabel, ...own.axisLabel } };
    }
    if (options.legend) options.legend.textStyle = { color: palette.ink };
    if (options.visualMap) options.visualMap.textStyle = { color: palette.faint };
    const tip = { backgroundColor: palette.ground, textStyle: { color: palette.ink }, confine: true };
    each.instance.setOption({
      animation: false, color: palette.colours, textStyle: { fontFamily: "inherit" }, ...options,
      tooltip: { ...tip, ...options.tooltip },
    });
    if (each.link) each.instance.group = "time";
  }
  echarts.connect("time");
}

function chartsOfRuns() {
  const runs = DATA.runs;
  const one = runs.length === 1 ? runs[0] : null;
  // Where there is but one kind, both together are the same again.
  const kinds = (of) => ["read", "write"].every((k) => of(k)) ? ["all", "read", "write"] : ["read", "write"].filter(of);
  const say = { all: "reads and writes", read: "reads", write: "writes" };
  const lines = one
    ? kinds((k) => one.percentiles[k].length).map((k) => ({ label: say[k], points: one.percentiles[k] }))
    : runs.map((r) => ({ label: r.label, points: r.percentiles.all }));
  card("percentiles", "Response times by percentile",
    one ? "Both axes are logarithmic; to the right ever fewer requests." : "Reads and writes together. Both axes are logarithmic.",
    () => percentiles(lines));
  const bars = one
    ? kinds((k) => one.parts[k]).map((k) => ({ label: say[k], parts_us: one.parts[k] }))
    : runs.map((r) => ({ label: r.label, parts_us: r.parts.all }));
  card("breakdown", "Where the mean response time went", "The parts sum to the mean.",
    (palette, dark) => breakdown(bars, dark), { height: one ? 0 : rowsHeight(bars.map((b) => b.label), 34, 300) });
  const past = runs.filter((r) => r.history.t_s.length);
  if (past.length) {
    const link = { link: true };
    card("iops", "Throughput", "Reads and writes completed a second, over virtual time.",
      () => overTime(past, "iops", short), link);
    if (one) card("latency", "Response times over time", "Logarithmic; of the requests that completed in a window.",
      () => latencyOverTime(one), link);
    else card("latency", "99th percentile over time", "Logarithmic; of the requests that completed in a window.",
      () => overTime(past, "p99_us", time, { type: "log", min: null }), link);
    card("queue", "Requests in the device", "Mean of each window.", () => overTime(past, "inside_mean", short), link);
    card("wa", "Write amplification", "Pages programmed for each one programmed for the host.",
      () => overTime(past, "gc_write_amplification", short, { min: null, scale: true }), link);
    card("hits", "Hit ratio of the buffer", "Share of page accesses found there.",
      () => overTime(past, "hit_ratio", percent, { min: null, scale: true }), link);
    past.filter((run) => Object.keys(run.history.owners).length).forEach((run, i) => {
      const of = one ? "" : `: ${run.label}`;
      card(`live-${i}`, `Live pages by owner${of}`, "Owners of units: h0 pages of the host of class 0, g0 its survivors, s those of all classes.",
        (palette) => owners(run, "live", short, palette), link);
      card(`units-${i}`, `Units by owner${of}`, "Units that each owner holds at the end of a window.",
        (palette) => owners(run, "units", short, palette), link);
      card(`moved-${i}`, `Pages moved by owner${of}`, "Moved out of the owner's units for each page of the host.",
        (palette) => owners(run, "moved", short, palette), link);
    });
    past.forEach((run, i) => card(`gc-${i}`, one ? "Garbage collection by chip" : `Garbage collection by chip: ${run.label}`,
      "Share of each window that a chip spent collecting.", (palette) => collecting(run, palette),
      { wide: true, canvas: true, height: Math.min(520, 120 + 10 * run.chips) }));
  }
  if (runs.some((r) => r.destages.some((n) => n))) {
    card("destages", "Lengths of destages", "Of the evictions that wrote back, the share that wrote so many pages.",
      () => destages(runs));
  }
  runs.filter((r) => Object.keys(r.collected).length).forEach((run, i) => {
    card(`collected-${i}`, `Live share of collected units${one ? "" : `: ${run.label}`}`,
      "Of the units of an owner that were collected, by the share of their pages that were live.", () => collected(run));
  });
  if (runs.some((r) => r.erases.length)) {
    card("erases", "Erases by block", "How many blocks were erased how often; logarithmic upwards.", () => erases(runs));
  }
}

function chartsOfSweep() {
  const points = DATA.points;
  const height = rowsHeight(points.map((p) => p.label), 22, 220);
  for (const figure of DATA.figures) {
    card(`mean-${figure.name}`, figure.name, DATA.seeds > 1 ? `Mean of ${DATA.seeds} seeds and its 95 % interval.` : "One seed.",
      () => means(figure, points), { height });
  }
  const drawnPoints = points.filter((p) => p.percentiles.length);
  if (drawnPoints.length) {
    const range = sharedRange(drawnPoints.map((p) => p.percentiles));
    panels(drawnPoints, DATA.axes).forEach(([title, lines], i) => {
      const rows = legendRows(lines.map((l) => l.label), NARROW);
      card(`percentiles-${i}`, `Response times by percentile${title && `: ${title}`}`, "Reads and writes of all seeds.",
        () => percentiles(lines, range), { height: 270 + 24 * rows });
    });
    card("breakdown", "Where the mean response time went", "Mean over seeds; the parts sum to it.",
      (palette, dark) => breakdown(points, dark), { wide: true, height });
  }
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const [m, n] = [parseFloat(x), parseFloat(y)];
        const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n;
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (e) => { if (e.key === "Enter") sort(); });
  });
}

function chartsOfStudy() {
  DATA.figures.forEach((figure, i) => {
    card(`figure-${i}`, figure.title, `${figure.unit}, over ${figure.over}. Means over seeds.`, () => grouped(figure));
  });
}

function chartsOfCalibration() {
  DATA.figures.forEach((figure, i) => card(`figure-${i}`, figure.title, figure.unit, () => grouped(figure)));
}

// Cells of heat tables: a click opens a panel, arrow keys move between cells.
function clickable(table, open) {
  const buttons = [...table.querySelectorAll("button")];
  buttons.forEach((button, i) => { button.tabIndex = i ? -1 : 0; });
  const focus = (button) => {
    buttons.forEach((each) => { each.tabIndex = each === button ? 0 : -1; });
    button.focus();
  };
  table.addEventListener("click", (e) => {
    const button = e.target.closest("button");
    if (!button) return;
    focus(button);
    open(+button.dataset.cell, button);
  });
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  table.addEventListener("keydown", (e) => {
    const step = steps[e.key], cell = e.target.closest("td");
    if (!step || !cell) return;
    e.preventDefault();
    const rows = [...table.rows];
    let [y, x] = [rows.indexOf(cell.parentElement) + step[0], cell.cellIndex + step[1]];
    while (rows[y]?.cells.length && y > 0 && x > 0 && x < rows[0].cells.length) {
      const button = rows[y].cells[x]?.querySelector("button");
      if (button) { focus(button); return; }
      [y, x] = [y + step[0], x + step[1]];
    }
  });
}

// The panel of a cell: measured and modelled curves, and the command that runs its row again.
function panelOfDrive(number, button) {
  const cell = DATA.cells[number];
  const element = (tag, text, into) => {
    const found = document.createElement(tag);
    found.textContent = text;
    into.append(found);
    return found;
  };
  const panel = element("dialog", "", document.body);
  panel.className = "panel";
  const header = element("header", "", panel);
  element("h2", `${DATA.figures[cell.figure]}: ${cell.row}`, header).id = "panel-title";
  panel.setAttribute("aria-labelledby", "panel-title");
  const close = element("button", "Close", header);
  close.addEventListener("click", () => panel.close());
  const facts = element("dl", "", panel);
  const digits = (value) => value === null ? "-" : String(+value.toPrecision(5));
  const signed = (value) => value === null ? "-" : `${value < 0 ? "" : "+"}${value.toFixed(1)} %`;
  for (const [name, value] of [
    ["measured", digits(cell.measured)], ["modelled", cell.note ? `not run: ${cell.note}` : digits(cell.modelled)],
    ["error", signed(cell.error_percent)],
    ["standard error of the run", cell.run_error_percent === null ? "-" : `${cell.run_error_percent.toFixed(1)} %`],
    ["use", cell.role === "held out" ? `held out by ${cell.split}` : cell.role === "open" ? "not fitted to this drive" : cell.role],
    ["drive", cell.drive], ["device", cell.device], ["release", cell.release]]) {
    const fact = element("div", "", facts);
    element("dt", name, fact);
    element("dd", value, fact);
  }
  const curves = element("div", "", panel);
  curves.className = "curves";
  const before = drawn.length;
  const percentile = /^(read|write)_p([\d.]+)_us$/;
  const own = DATA.cells.filter((c) => c.row === cell.row && c.device === cell.device && c.release === cell.release &&
    c.modelled !== null && percentile.test(c.figure));
  const others = DATA.cells.filter((c) => c.curve === cell.curve && c.modelled !== null);
  if (others.length) {
    const rows = cell.at === null ? [...new Set(others.map((c) => c.load))] : [];
    card("curve", `${DATA.figures[cell.figure]}, by load`, "The chosen load has larger marks.",
      () => byLoad(cell, others), { into: curves, height: rows.length ? rowsHeight(rows, 20, 300) : 300 });
  }
  if (own.length) {
    card("row", "Percentiles of the row", "Logarithmic; measured and modelled at p50, p99 and p99.9.",
      (palette) => percentilesOfRow(own, percentile, palette), { into: curves });
  }
  element("div", "Command that runs the row again:", panel);
  element("pre", cell.command, panel).id = "command";
  element("div", "It prints this line, among others of the row:", panel);
  element("pre", cell.line, panel).id = "line";
  panel.addEventListener("close", () => {
    drawn.splice(before).forEach((each) => each.instance?.dispose());
    panel.remove();
    button.focus();
  });
  panel.addEventListener("click", (e) => { if (e.target === panel) panel.close(); });
  panel.showModal();
  draw(drawn.slice(before));
}

if (DATA.kind === "sweep") chartsOfSweep();
else if (DATA.kind === "drives") document.querySelectorAll("table.heat").forEach((table) => clickable(table, panelOfDrive));
else if (DATA.kind === "study") chartsOfStudy();
else if (DATA.kind === "calibration") chartsOfCalibration();
else chartsOfRuns();
document.querySelectorAll("table.sortable").forEach(sortable);
if (location.hash === "#print") document.documentElement.classList.add("print");
draw();
SYSTEM_DARK.addEventListener("change", () => draw());
addEventListener("beforeprint", () => { document.documentElement.classList.add("print"); draw(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("print"); draw(); });
let waiting = 0;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => drawn.forEach((each) => each.instance.resize()), 100);
});
