"use strict";
// What the page does beyond its HTML: sort and switch the leaderboard, and draw the figures when they come into view.

const COLOURS = ["#0b75d8", "#e0672b", "#2a9d5c", "#b145b8", "#c99700", "#16a3b5", "#d43d6b", "#7a6ff0", "#8a6d3b", "#6b7a8c"];
const NOTHING_TUNED = "fixed_0.5";
const SHARES = [0.01, 0.1, 1, 10].flatMap((power) => [power, 2 * power, 5 * power]).concat(100);
const MANY = 8; // More lines than this in colour cannot be told apart.
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map();
let ready = null;

root.classList.add("js");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element && name !== "list") element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

async function inflated(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function plotly() {
  ready ??= inflated("plotly").then((source) => { document.head.append(make("script", { textContent: source })); });
  return ready;
}

// Plotly reads a little markup in its texts.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();

function sortable(table) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => {
    const before = header.getAttribute("aria-sort");
    const first = column === 0 ? "ascending" : "descending";
    const order = before === first ? (first === "ascending" ? "descending" : "ascending") : first;
    headers.forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const key = (row) => row.cells[column].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      if (column === 0) return sign * a.cells[0].textContent.localeCompare(b.cells[0].textContent);
      if (key(a) === undefined || key(b) === undefined) return (key(a) === undefined) - (key(b) === undefined);
      return sign * (key(a) - key(b));
    });
    body.append(...rows);
  }));
}

function pills(box, names, chosen, choose) {
  const buttons = Object.entries(names).map(([key, name]) => make("button", { type: "button", textContent: name, onclick: () => pick(key) }));
  const keys = Object.keys(names);
  function pick(key) {
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", keys[k] === key));
    choose(key);
  }
  box.append(...buttons);
  pick(chosen);
}

function select(label, names, chosen, redraw) {
  const options = Object.entries(names).map(([value, name]) => make("option", { value, textContent: name, selected: value === chosen }));
  const box = make("select", { onchange: redraw }, ...options);
  return { box: make("label", {}, `${label} `, box), get value() { return box.value; } };
}

function layout(height, extra = {}) {
  const axis = { gridcolor: variable("--line"), zerolinecolor: variable("--line"), linecolor: variable("--line"), automargin: true, fixedrange: true };
  const { xaxis = {}, yaxis = {}, ...rest } = extra;
  return {
    height, margin: { l: 48, r: 12, t: 8, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, hovermode: "closest",
    font: { color: variable("--ink"), family: "system-ui, sans-serif", size: 12 },
    hoverlabel: { bgcolor: variable("--card"), bordercolor: variable("--line"), font: { color: variable("--ink") } },
    legend: { orientation: "h", y: -0.22, yanchor: "top", font: { size: 11 } },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

const titled = (text) => ({ title: { text, font: { size: 12 } } });

// One card: `draw` gives traces and a layout, and is asked again when a control or the colour scheme changes.
function figure(box, title, about, kind, controls, draw, extra = []) {
  const plot = make("div", { className: "plot" });
  const card = make("div", { className: `card ${kind}` }, make("h2", { textContent: title }), make("p", { className: "small", textContent: about }));
  if (controls.length) card.append(make("div", { className: "controls" }, ...controls.map((control) => control.box)));
  card.append(plot, ...extra);
  box.querySelector(".time").before(card);
  const redraw = async () => {
    await plotly();
    const { traces, plan } = draw();
    await Plotly.react(plot, traces, plan, { displayModeBar: false, responsive: true });
    plot.dataset.drawn = "yes";
  };
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    drawn.set(plot, redraw);
    redraw();
  }, { rootMargin: "300px" }).observe(plot);
  return { plot, redraw: () => drawn.has(plot) && redraw() };
}

function figures(box, data, metrics, rules) {
  const losses = data.losses;
  // Of many losses the best stand out, and bce; the others are thin and grey, and say their names when pointed at.
  const strong = new Set(losses.length <= MANY ? losses : [...losses.slice(0, MANY - 1), "bce"]);
  const places = [...new Set([...strong, ...losses])];
  const colour = (loss) => COLOURS[places.indexOf(loss) % COLOURS.length];
  const lines = (loss, x, y, more = {}) => ({
    type: "scatter", mode: "lines", name: loss, x, y, ...more, showlegend: strong.has(loss), zorder: Number(strong.has(loss)),
    line: strong.has(loss) ? { color: colour(loss), width: 2.2 } : { color: variable("--faint"), width: 1 }, opacity: strong.has(loss) ? 1 : 0.4,
  });
  const named = Object.fromEntries(losses.map((loss) => [loss, loss]));
  const used = Object.fromEntries(Object.entries(rules).filter(([rule]) => data.values[rule]));
  const first = used[NOTHING_TUNED] ? NOTHING_TUNED : Object.keys(used)[0];
  const f1 = Object.fromEntries(Object.keys(data.thresholds).map((metric) => [metric, metrics[metric]]));

  boxPlots();
  thresholdCurves();
  perLabel();
  learningCurves();
  surrogates();
  if (data.heat) heatMap();

  function boxPlots() {
    const metric = select("metric", metrics, "weighted_f1", () => card.redraw());
    const rule = select("rule", used, first, () => card.redraw());
    const card = figure(box, "Each seed", "A box spans the quartiles over seeds, a dot is a seed; the dashed line is the highest floor under any rule.", "wide", [metric, rule], () => {
      const of = data.values[rule.value];
      const order = losses.filter((loss) => of[loss]).sort((a, b) => mean(of[a][metric.value]) - mean(of[b][metric.value]));
      const traces = order.map((loss) => ({
        type: "box", orientation: "h", name: loss, x: of[loss][metric.value], boxpoints: "all", jitter: 0.4, pointpos: 0, width: 0.6,
        marker: { color: colour(loss), size: 6, opacity: 0.75 }, line: { width: 1.5 }, hovertemplate: "%{x:.1f}<extra></extra>", showlegend: false,
      }));
      const floor = data.floor[metric.value];
      const plan = layout(90 + 26 * order.length, {
        xaxis: titled(`${metrics[metric.value]}, %`), margin: { l: 8, r: 16, t: 24, b: 44 },
        shapes: [{ type: "line", x0: floor, x1: floor, yref: "paper", y0: 0, y1: 1, line: { color: variable("--faint"), dash: "dash", width: 1.5 } }],
        annotations: [{ x: floor, yref: "paper", y: 1, yanchor: "bottom", text: `${plain(data.floorName[metric.value])} ${floor.toFixed(1)}`, showarrow: false, font: { color: variable("--faint") } }],
      });
      return { traces, plan };
    });
  }

  function thresholdCurves() {
    const grid = data.grid;
    const metric = select("metric", f1, "weighted_f1", () => { card.redraw(); read(); });
    const slider = make("input", { type: "range", min: 0, max: grid.length - 1, step: 1, value: grid.indexOf(0.5) });
    slider.setAttribute("aria-label", "Threshold");
    const shown = make("output");
    const readout = make("ul", { className: "readout" });
    const line = () => ({ type: "line", x0: grid[slider.value], x1: grid[slider.value], yref: "paper", y0: 0, y1: 1, line: { color: variable("--ink"), width: 1.5 } });
    const read = () => {
      const of = data.thresholds[metric.value];
      shown.textContent = String(grid[slider.value]);
      const order = Object.keys(of).sort((a, b) => of[b][slider.value] - of[a][slider.value]);
      readout.replaceChildren(...order.map((loss) => make("li", {},
        make("span", {}, make("i", { style: `background:${strong.has(loss) ? colour(loss) : "var(--line)"}` }), loss), make("b", { textContent: (of[loss][slider.value] / 10).toFixed(1) }))));
    };
    slider.addEventListener("input", () => {
      read();
      if (drawn.has(card.plot) && card.plot.dataset.drawn) Plotly.relayout(card.plot, { shapes: [line()] });
    });
    const card = figure(box, "One threshold for all labels", `F1 on validation data at each threshold on loss.scores, mean over seeds. Drag the slider: a flat curve forgives a wrong threshold, a steep one needs tuning. 0.5 is each loss's own boundary.`, "wide",
      [metric], () => {
        const of = data.thresholds[metric.value];
        const traces = Object.keys(of).map((loss) => lines(loss, grid, of[loss].map((value) => value / 10), { hovertemplate: `${loss} at %{x}: %{y:.1f}<extra></extra>` }));
        return { traces, plan: layout(320, { xaxis: { ...titled("threshold"), range: [0, 1] }, yaxis: titled(`${metrics[metric.value]}, %`), shapes: [line()], showlegend: false }) };
      }, [make("div", { className: "slider" }, slider, shown), readout]);
    read();
  }

  function perLabel() {
    const rule = select("rule", used, data.best[1], () => card.redraw());
    const one = select("loss", named, data.best[0], () => card.redraw());
    const other = select("against", named, losses.includes("bce") && data.best[0] !== "bce" ? "bce" : losses.at(-1), () => card.redraw());
    const small = data.labels.length > 200;
    const card = figure(box, "Rare and frequent labels", "F1 of each label on the test part against its share of examples, mean over seeds.", "", [one, other, rule], () => {
      const of = data.perLabel[rule.value];
      const pair = [...new Set([other.value, one.value])].filter((loss) => of[loss]);
      const traces = pair.map((loss) => ({
        type: "scatter", mode: "markers", name: loss, x: data.share.map((share) => 100 * share), y: of[loss].map((value) => value / 10), text: data.labels.map(plain),
        marker: { color: loss === one.value ? COLOURS[0] : COLOURS[1], size: small ? 5 : 9, opacity: small ? 0.5 : 0.8, symbol: loss === one.value ? "circle" : "diamond-open" },
        hovertemplate: `%{text}<br>%{x:.2f} % of examples<br>${loss} F1 %{y:.1f}<extra></extra>`,
      }));
      return { traces, plan: layout(360, { xaxis: { ...titled("share of examples, %"), type: "log", tickvals: SHARES }, yaxis: { ...titled("F1, %"), range: [-3, 103] }, showlegend: true }) };
    });
  }

  function learningCurves() {
    const followed = Object.fromEntries(Object.entries(used).filter(([rule]) => data.curves.rules[rule]));
    const rule = select("rule", followed, followed[first] ? first : Object.keys(followed)[0], () => card.redraw());
    const card = figure(box, "Learning curves", "Weighted F1 on validation data by epoch, mean over seeds; rules that learn are cross-fitted.", "", [rule], () => {
      const of = data.curves.rules[rule.value] ?? {};
      const traces = Object.keys(of).map((loss) => lines(loss, data.curves.epoch, of[loss].map((value) => (value === null ? null : value / 10)), { hovertemplate: `${loss}, epoch %{x}: %{y:.1f}<extra></extra>` }));
      return { traces, plan: layout(360, { xaxis: titled("epoch"), yaxis: titled("weighted F1, %"), showlegend: true }) };
    });
  }

  function surrogates() {
    const of = data.surrogates.losses;
    if (!Object.keys(of).length) return;
    figure(box, "What stands in for a yes", "The surrogate of each metric loss by the logit, at its default knobs; the step is the decision itself. Those that coincide share a line.", "", [], () => {
      const curves = new Map();
      for (const [loss, values] of Object.entries(of)) curves.set(values.join(), [...(curves.get(values.join()) ?? []), loss]);
      const z = data.surrogates.z;
      const step = { type: "scatter", mode: "lines", name: "decision", x: [z[0], 0, 0, z.at(-1)], y: [0, 0, 1, 1], line: { color: variable("--faint"), dash: "dot", width: 1.5 }, hoverinfo: "skip" };
      const traces = [...curves.values()].map((same) => lines(same[0], z, of[same[0]], { name: same.length > 2 ? `${same[0]} and ${same.length - 1} others` : same.join(", "), showlegend: true, hovertemplate: "z = %{x}: %{y:.3f}<extra></extra>" }));
      return { traces: [step, ...traces], plan: layout(340, { xaxis: titled("logit z"), yaxis: { ...titled("stand-in"), range: [-0.3, 1.3] }, showlegend: true }) };
    });
  }

  function heatMap() {
    const loss = select("loss", Object.fromEntries(Object.keys(data.heat).map((name) => [name, name])), Object.keys(data.heat)[0], () => card.redraw());
    const card = figure(box, "Slope and offset", "Weighted F1 on validation data at the own boundary, the best learning rate of each place, mean over seeds.", "", [loss], () => {
      const of = data.heat[loss.value];
      const traces = [{ type: "heatmap", x: of.slopes.map(String), y: of.offsets.map(String), z: of.values, colorscale: "Viridis", hovertemplate: "slope %{x}, offset %{y}: %{z:.1f}<extra></extra>" }];
      return { traces, plan: layout(360, { xaxis: { ...titled("slope"), type: "category" }, yaxis: { ...titled("offset"), type: "category" } }) };
    });
  }
}

for (const board of document.querySelectorAll(".board")) {
  const tables = [...board.querySelectorAll(".metric")];
  const names = Object.fromEntries(tables.map((table) => [table.dataset.metric, table.getAttribute("aria-label")]));
  tables.forEach((table) => sortable(table.querySelector("table")));
  pills(board.querySelector(".pills"), names, tables[0].dataset.metric, (metric) => tables.forEach((table) => { table.hidden = table.dataset.metric !== metric; }));
}

const sections = [...document.querySelectorAll("section.dataset")];
const datasetButtons = [...document.querySelectorAll("nav.datasets button")];
function show(place) {
  sections.forEach((section) => { section.hidden = section.dataset.place !== place; });
  datasetButtons.forEach((button) => button.setAttribute("aria-pressed", button.dataset.place === place));
}
if (datasetButtons.length) {
  datasetButtons.forEach((button) => button.addEventListener("click", () => show(button.dataset.place)));
  show("0");
}

dark.addEventListener("change", () => drawn.forEach((redraw) => redraw()));

inflated("data").then((text) => {
  const data = JSON.parse(text);
  sections.forEach((section, k) => figures(section.querySelector(".figures"), data.datasets[k], data.metrics, data.rules));
}).catch((problem) => {
  console.error(problem);
  sections.forEach((section) => section.querySelector(".time").before(make("p", { className: "card", textContent: "The figures need a browser of 2023 or later." })));
});
