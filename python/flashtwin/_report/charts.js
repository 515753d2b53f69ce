// The charts of a report as options of ECharts. Each takes the page's data; nothing here touches the page.
"use strict";

const CATEGORIES = ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65+"];
// Lines differ in dashes, too: the page is read in grey as well.
const DASHES = ["solid", "dashed", "dotted", [10, 3, 2, 3], [2, 2], [12, 4]];

function time(us) {
  if (us === null || us === undefined) return "-";
  const a = Math.abs(us);
  const [f, u] = a === 0 ? [1, ""] : a < 1 ? [1e3, " ns"] : a < 1e3 ? [1, " us"] : a < 1e6 ? [1e-3, " ms"] : [1e-6, " s"];
  return short(us * f) + u;
}

function short(x) {
  if (x === null || x === undefined) return "-";
  const a = Math.abs(x);
  if (a >= 1e9) return +(x / 1e9).toPrecision(3) + " G";
  if (a >= 1e6) return +(x / 1e6).toPrecision(3) + " M";
  if (a >= 1e4) return +(x / 1e3).toPrecision(3) + " k";
  return String(+x.toPrecision(4));
}

function seconds(s) {
  return s === 0 ? "0" : s < 1e-3 ? short(s * 1e6) + " us" : s < 1 ? short(s * 1e3) + " ms" : short(s) + " s";
}

function percent(x) { return x === null || x === undefined ? "-" : short(x * 100) + " %"; }

// 1 / (1 - share) as the percentile it stands for.
function nines(x) {
  if (x <= 1) return "0";
  return "p" + +(100 - 100 / x).toPrecision(9);
}

function line(name, data, i, more) {
  return Object.assign({
    name, data, type: "line", showSymbol: false, lineStyle: { width: 1.8, type: DASHES[i % DASHES.length] },
    emphasis: { focus: "series" }, sampling: "none",
  }, more);
}

// All names stand above a chart, in as many rows as they take.
function legend(names) {
  return names.length < 2 ? { show: false } : { type: "plain", top: 0, data: names };
}

function legendRows(names, width) {
  let rows = 1, used = 0;
  for (const name of names) {
    const own = textWidth(name) + 45;
    if (used && used + own > width) [rows, used] = [rows + 1, 0];
    used += own;
  }
  return rows;
}

function frame(names, bottom, width) {
  const top = names.length < 2 ? 14 : 8 + 24 * legendRows(names, width || NARROW);
  return { left: 8, right: 30, top, bottom: bottom || 26, containLabel: true };
}

// Of cards side by side on the narrowest page that has them, and of the letters of labels, in pixels.
const NARROW = 330, LETTER = 6.8, LABEL_MAX = 300;

function textWidth(text) { return text.length * LETTER; }

// Labels of rows, in full: long ones break into lines.
function rowLabels(names) {
  const width = Math.min(LABEL_MAX, Math.max(...names.map(textWidth)) + 4);
  return { width, overflow: "breakAll", interval: 0, lineHeight: 14 };
}

// Height of a chart with a labelled row each.
function rowsHeight(names, row, least) {
  const lines = Math.max(1, ...names.map((name) => Math.ceil(textWidth(name) / LABEL_MAX)));
  return Math.max(least, 60 + Math.max(row, 16 * lines) * names.length);
}

function named(text, gap) { return { name: text, nameLocation: "middle", nameGap: gap || 26 }; }

// How long requests took, up to the 99.99th percentile.
function percentiles(lines, range) {
  const names = lines.map((l) => l.label);
  return {
    legend: legend(names), grid: frame(names, 40),
    tooltip: { trigger: "axis", valueFormatter: time, axisPointer: { label: { formatter: (p) => nines(p.value) } } },
    xAxis: Object.assign({ type: "log", min: 1, max: 10000, axisLabel: { formatter: nines } }, named("percentile")),
    yAxis: Object.assign({ type: "log", axisLabel: { formatter: time } }, range),
    series: lines.map((l, i) => line(l.label, l.points, i)),
  };
}

// Points of a sweep in panels: lines differ in one axis, the policy if it varies, panels in the others.
function panels(points, axes) {
  const by = Math.max(0, axes.indexOf("policy"));
  const found = new Map();
  for (const point of points) {
    const title = axes.map((axis, i) => `${axis} ${point.axes[i]}`).filter((_, i) => i !== by).join(", ");
    if (!found.has(title)) found.set(title, []);
    found.get(title).push({ label: axes.length ? point.axes[by] : point.label, points: point.percentiles });
  }
  return [...found];
}

// The same range for all panels, so that they can be compared.
function sharedRange(lists) {
  const times = lists.flat().map(([, us]) => us).filter((us) => us > 0);
  return times.length ? { min: 10 ** Math.floor(Math.log10(Math.min(...times))),
    max: 10 ** Math.ceil(Math.log10(Math.max(...times))) } : {};
}

// One value over time, a line a run.
function overTime(runs, key, format, more) {
  const names = runs.map((r) => r.label);
  return {
    legend: legend(names), grid: frame(names), tooltip: { trigger: "axis", valueFormatter: format,
      axisPointer: { label: { formatter: (p) => seconds(p.value) } } },
    xAxis: { type: "value", min: 0, max: Math.max(...runs.map((r) => r.history.end_s)), axisLabel: { formatter: seconds } },
    yAxis: Object.assign({ type: "value", min: 0, axisLabel: { formatter: format } }, more),
    // The wheel alone scrolls the page.
    dataZoom: [{ type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl" }],
    series: runs.map((r, i) => line(r.label, steps(r, r.history[key]), i, { step: "end" })),
  };
}

// A window's value holds from its start to its end.
function steps(run, values) {
  const h = run.history;
  const points = h.t_s.map((t, i) => [t, values[i]]);
  if (points.length) points.unshift([h.t_s[0], values[0]]);
  return points.map((p, i) => [i ? h.t_s[i - 1] + h.length_s[i - 1] : 0, p[1]]);
}

// Mean and 99th percentile of one run over time.
function latencyOverTime(run) {
  const options = overTime([run], "mean_us", time, { type: "log", min: null });
  options.legend = legend(["p99", "mean"]);
  options.grid = frame(["p99", "mean"]);
  options.series = [["p99", "p99_us"], ["mean", "mean_us"]].map(([name, key], i) =>
    line(name, steps(run, run.history[key]), i, { step: "end" }));
  return options;
}

// Share of each window that each chip spent collecting.
function collecting(run, palette) {
  const h = run.history;
  const cells = [];
  h.gc_share_by_chip.forEach((chips, x) => chips.forEach((share, y) => { if (share > 0) cells.push([x, y, share]); }));
  const chips = Math.max(1, ...h.gc_share_by_chip.map((c) => c.length));
  return {
    grid: { left: 8, right: 84, top: 10, bottom: 26, containLabel: true },
    tooltip: { formatter: (p) => `chip ${p.value[1]}, from ${seconds(h.t_s[p.value[0]])}: ${percent(p.value[2])} in GC` },
    xAxis: { type: "category", data: h.t_s.map(seconds), splitArea: { show: false } },
    yAxis: Object.assign({ type: "category", data: Array.from({ length: chips }, (_, i) => String(i)) }, named("chip", 34)),
    visualMap: { min: 0, max: 1, calculable: true, orient: "vertical", right: 0, top: "middle", itemHeight: 120,
      precision: 2, formatter: (v) => percent(+v), inRange: { color: palette.heat } },
    series: [{ type: "heatmap", data: cells, progressive: 0, emphasis: { disabled: true } }],
  };
}

// A value of each owner of units over time, one on top of the other.
function owners(run, key, format, palette) {
  const h = run.history, names = Object.keys(h.owners);
  const options = overTime([run], "iops", format);
  options.legend = legend(names);
  options.grid = frame(names);
  options.series = names.map((name, i) => line(name, steps(run, h.owners[name][key]), i, {
    step: "end", stack: "owners", connectNulls: true, areaStyle: { opacity: 0.35, color: palette.colours[i % palette.colours.length] },
  }));
  return options;
}

// Live share of the units that were collected, a line an owner.
function collected(run) {
  const names = Object.keys(run.collected);
  const bars = names.map((name, i) => {
    const counts = run.collected[name], total = counts.reduce((a, b) => a + b, 0) || 1;
    return { name, type: "bar", data: counts.map((n) => n / total), itemStyle: { decal: DECALS[i % DECALS.length] } };
  });
  const n = Math.max(...names.map((name) => run.collected[name].length));
  return {
    legend: legend(names), grid: frame(names, 40), tooltip: { trigger: "axis", valueFormatter: percent },
    xAxis: Object.assign({ type: "category", data: Array.from({ length: n }, (_, i) => percent(i / n)) }, named("live pages, from")),
    yAxis: { type: "value", axisLabel: { formatter: percent } }, series: bars,
  };
}

// Of evictions that wrote back, how many wrote back so many pages.
function destages(runs) {
  const names = runs.map((r) => r.label);
  const bars = runs.map((r) => {
    const total = r.destages.reduce((a, b) => a + b, 0) || 1;
    return { name: r.label, type: "bar", data: r.destages.map((n) => n / total) };
  });
  return {
    legend: legend(names), grid: frame(names, 40), tooltip: { trigger: "axis", valueFormatter: percent },
    xAxis: Object.assign({ type: "category", data: CATEGORIES }, named("pages written back together")),
    yAxis: { type: "value", axisLabel: { formatter: percent } }, series: bars,
  };
}

// Where the mean response time went: a bar each, stacked of its parts.
function breakdown(bars, dark) {
  const parts = Object.keys(bars[0].parts_us).filter((p) => bars.some((b) => b.parts_us[p] > 0));
  const decals = parts.map((_, i) => DECALS[i % DECALS.length]);
  return {
    legend: { type: "plain", top: 0 },
    grid: { left: 8, right: 22, top: frame(parts.map(said)).top, bottom: 8, containLabel: true },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: time },
    xAxis: { type: "value", axisLabel: { formatter: time } },
    yAxis: { type: "category", inverse: true, data: bars.map((b) => b.label), axisLabel: rowLabels(bars.map((b) => b.label)) },
    series: parts.map((p, i) => ({
      name: said(p), type: "bar", stack: "all", data: bars.map((b) => b.parts_us[p]),
      barMaxWidth: 34, itemStyle: { decal: decals[i] && Object.assign({ color: dark ? "#0006" : "#fff8" }, decals[i]) },
    })),
  };
}

function said(part) { return part.replaceAll("_", " "); }

const DECALS = [
  null,
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: Math.PI / 4 },
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -Math.PI / 4 },
  { symbol: "circle", dashArrayX: [[5, 5], [0, 5, 5, 0]], dashArrayY: [5, 0], symbolSize: 0.7 },
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 3] },
];

// How many blocks were erased how often.
function erases(runs) {
  const names = runs.map((r) => r.label);
  return {
    legend: legend(names), grid: frame(names, 40), tooltip: { trigger: "axis", valueFormatter: short },
    xAxis: Object.assign({ type: "value", minInterval: 1, min: "dataMin", max: "dataMax" }, named("erases of a block")),
    yAxis: Object.assign({ type: "log", min: 1, axisLabel: { formatter: short } }, named("blocks", 44)),
    series: runs.map((r, i) => line(r.label, r.erases, i, { showSymbol: r.erases.length < 60, symbolSize: 5 })),
  };
}

function formatOf(column) { return column.endsWith("_us") ? time : /ratio$|_share_/.test(column) ? percent : short; }

// A figure of a sweep: mean and interval of each point.
function means(figure, points) {
  const format = formatOf(figure.name);
  const rows = points.map((p, i) => [p.values[figure.name], i]);
  return {
    grid: { left: 8, right: 26, top: 8, bottom: 24, containLabel: true },
    tooltip: { formatter: (p) => {
      const v = points[p.dataIndex].values[figure.name];
      const interval = v.low === null ? "" : `, ${format(v.low)} to ${format(v.high)}`;
      return echarts.format.encodeHTML(`${points[p.dataIndex].label}: ${format(v.mean)}${interval}`);
    } },
    xAxis: { type: "value", scale: true, axisLabel: { formatter: format, hideOverlap: true } },
    yAxis: { type: "category", inverse: true, data: points.map((p) => p.label),
      axisLabel: rowLabels(points.map((p) => p.label)) },
    series: [
      { type: "custom", silent: true, data: rows.filter(([v]) => v.low !== null).map(([v, i]) => [v.low, v.high, i]),
        encode: { x: [0, 1], y: 2 }, renderItem: (_, api) => {
          const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), api.value(2)]);
          const stroke = { stroke: api.visual("color"), lineWidth: 1.5 };
          const tick = (x) => ({ type: "line", shape: { x1: x, y1: a[1] - 5, x2: x, y2: a[1] + 5 }, style: stroke });
          return { type: "group", children: [
            { type: "line", shape: { x1: a[0], y1: a[1], x2: b[0], y2: b[1] }, style: stroke }, tick(a[0]), tick(b[0])] };
        } },
      { type: "scatter", symbolSize: 8, data: rows.map(([v, i]) => [v.mean, i]) },
    ],
  };
}

// A figure of a study: a group of bars for each place, a bar for each line.
function grouped(figure) {
  const format = figure.relative ? short : formatOf(figure.figure);
  const names = figure.lines.map((l) => l.name);
  return {
    legend: legend(names), grid: frame(names, 40), tooltip: { trigger: "axis", valueFormatter: format },
    xAxis: { type: "category", data: figure.places, axisLabel: { interval: 0, hideOverlap: true } },
    yAxis: { type: "value", axisLabel: { formatter: format } },
    series: figure.lines.map((l, i) => ({ type: "bar", name: l.name, data: l.values.map((v) => v && v[0]),
      itemStyle: { decal: DECALS[i % DECALS.length] } })),
  };
}

// A figure of a drive over its loads: measured, and modelled by each release.
function byLoad(cell, others) {
  const format = formatOf(cell.figure);
  const releases = [...new Set(others.map((c) => c.release))];
  const sorted = [...others].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  const names = [...new Set(sorted.map((c) => c.load))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const lists = [["measured", releases[0], "measured"],
    ...releases.map((release) => [releases.length > 1 ? `modelled, ${release}` : "modelled", release, "modelled"])];
  const listed = cell.at === null, labels = rowLabels(names);
  const value = Object.assign({ axisLabel: { formatter: format, hideOverlap: true } },
    cell.figure.endsWith("_us") ? { type: "log" } : { type: "value", scale: true });
  const series = lists.map(([name, release, key], i) => line(name,
    sorted.filter((c) => c.release === release).map((c) => ({
      value: listed ? [c[key], c.load] : [c.at, c[key]], symbolSize: c.load === cell.load ? 15 : 7,
    })), i, { showSymbol: true, symbol: i ? "diamond" : "circle", type: listed ? "scatter" : "line" }));
  const tooltip = listed ? { trigger: "item", formatter: (p) =>
    echarts.format.encodeHTML(`${p.value[1]}, ${p.seriesName}: ${format(p.value[0])}`) } : { trigger: "axis", valueFormatter: format };
  return {
    legend: { ...legend(lists.map(([name]) => name)), itemWidth: listed ? 14 : 25 },
    grid: frame(lists.map(([name]) => name), listed ? 26 : 40), tooltip,
    xAxis: listed ? value : Object.assign({ type: "value", scale: true, axisLabel: { formatter: short } }, named(cell.across)),
    yAxis: listed ? { type: "category", inverse: true, data: names, axisLabel: { ...labels, width: labels.width + 20 } } : value, series,
  };
}

// Percentiles of a row of a drive: colours differ between reads and writes, dashes between measured and modelled.
function percentilesOfRow(cells, pattern, palette) {
  const ops = [...new Set(cells.map((c) => pattern.exec(c.figure)[1]))];
  const lines = ops.flatMap((op, i) => ["measured", "modelled"].map((key, j) => ({ label: `${op}s, ${key}`, colour: i, dash: j,
    points: cells.filter((c) => c.figure.startsWith(op)).map((c) => [100 / (100 - pattern.exec(c.figure)[2]), c[key]]) })));
  const options = percentiles(lines, sharedRange(lines.map((l) => l.points)));
  options.xAxis.max = 1000;
  options.series.forEach((s, i) => Object.assign(s, { showSymbol: true, symbol: lines[i].dash ? "diamond" : "circle",
    symbolSize: 8, itemStyle: { color: palette.colours[lines[i].colour] },
    lineStyle: { width: 1.8, type: DASHES[lines[i].dash], color: palette.colours[lines[i].colour] } }));
  return options;
}
