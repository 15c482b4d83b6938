"use strict";
// Asks the service, and shows what it says. Names of labels are only ever set as text.

const SHOWN = 25; // So many labels at first, and all that are predicted.
const PROMPTS = { text: "A text", matrix: "A row of numbers, with commas or spaces between them" };
const $ = (id) => document.getElementById(id);
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const number = (value) => (value === "inf" ? Infinity : value === "-inf" ? -Infinity : value);
let model = null;
let token = null;
let answer = null;
let image = null;
let every = false;

function make(tag, name, text = "") {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}

function say(line) {
  $("error").textContent = line;
  $("error").hidden = !line;
}

async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("the service cannot be reached");
  }
  const found = await response.json().catch(() => ({}));
  if (response.status === 401) {
    $("token").hidden = false;
    $("ask").hidden = true;
  }
  if (!response.ok) throw new Error(found.error ?? `the service says ${response.status}`);
  return found;
}

async function begin() {
  try {
    model = await ask("model");
  } catch (problem) {
    $("title").textContent = "Labels and scores";
    say(problem.message);
    return;
  }
  say("");
  $("token").hidden = true;
  $("ask").hidden = false;
  $("title").textContent = `A model of ${model.data.name}`;
  document.title = `scoreloss serve: ${model.data.name}`;
  const facts = { labels: model.labels.length, loss: model.loss.tried_as, rule: model.rule.name, backbone: model.backbone.name };
  const scores = model.test ?? model.validation;
  if (scores?.scores?.weighted_f1 !== undefined) facts[`weighted F1, ${model.test ? "test" : "validation"}`] = percent(scores.scores.weighted_f1);
  $("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const item = make("li", "", `${name} `);
    item.append(make("b", "", String(value)));
    return item;
  }));
  $("words").hidden = model.kind === "image";
  $("drop").hidden = model.kind !== "image";
  $("prompt").textContent = PROMPTS[model.kind] ?? "";
  $("means").textContent = model.thresholds ? "Thresholds: more labels, or fewer" : "One threshold for all labels";
}

function body() {
  if (model.kind === "image") {
    if (!image) throw new Error("choose an image first");
    const form = new FormData();
    form.append("inputs", image);
    return { body: form };
  }
  const text = $("text").value;
  let input = text;
  if (model.kind === "matrix") {
    input = text.split(/[\s,;]+/).filter(Boolean).map(Number);
    if (!input.length || input.some((value) => !Number.isFinite(value))) throw new Error("a row of numbers is needed");
    input = [input];
  }
  return { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ inputs: input }) };
}

async function predict(event) {
  event.preventDefault();
  $("go").disabled = true;
  try {
    const found = await ask("predict", { method: "POST", ...body() });
    answer = found.predictions[0];
    every = false;
    say("");
    back();
    $("answer").hidden = false;
  } catch (problem) {
    say(problem.message);
  }
  $("go").disabled = false;
}

// The slider moves every threshold by the same step of log odds: their order stays, and the middle is the model itself.
// A rule without thresholds gets one for all labels instead.
function threshold(place) {
  const at = Number($("slide").value);
  if (!model.thresholds) return (at + 100) / 200;
  const own = number(model.thresholds[place]);
  if (!(own > 0 && own < 1)) return own;
  return 1 / (1 + Math.exp(-(Math.log(own / (1 - own)) + at / 20)));
}

let own = true;

function draw() {
  const chosen = new Set(answer.labels);
  const rows = model.labels.map((label, place) => {
    const limit = own && !model.thresholds ? null : threshold(place);
    const score = answer.scores[label];
    return { label, score, limit, yes: own ? chosen.has(label) : score >= limit };
  }).sort((a, b) => b.score - a.score);
  const yes = rows.filter((row) => row.yes);
  const shown = every ? rows : rows.filter((row, place) => place < SHOWN || row.yes);
  $("found").textContent = yes.length ? yes.map((row) => row.label).join(", ") : "No label";
  $("expected").textContent = own
    ? `Expected F1 ${percent(answer.expected_f1)}`
    : "With thresholds that were moved; the model itself decides otherwise.";
  $("at").textContent = own ? "" : model.thresholds ? `${Number($("slide").value) > 0 ? "fewer" : "more"}` : threshold(0).toFixed(3);
  $("back").disabled = own;
  $("bars").replaceChildren(...shown.map((row) => {
    const item = make("li", row.yes ? "yes" : "");
    const track = make("span", "track");
    const bar = make("span", "bar");
    bar.style.width = `${100 * row.score}%`;
    track.append(bar);
    if (row.limit !== null && row.limit >= 0 && row.limit <= 1) {
      const mark = make("span", "mark");
      mark.style.left = `${100 * row.limit}%`;
      mark.title = `threshold ${row.limit.toFixed(4)}`;
      track.append(mark);
    }
    item.append(make("span", "name", row.label), track, make("span", "score", percent(row.score)));
    return item;
  }));
  $("all").hidden = shown.length === rows.length;
  $("all").textContent = `Show all ${rows.length} labels`;
}

function back() {
  own = true;
  $("slide").value = 0;
  draw();
}

function show(file) {
  image = file;
  $("shown").hidden = !file;
  if (!file) return;
  URL.revokeObjectURL($("shown").src);
  $("shown").src = URL.createObjectURL(file);
}

$("ask").addEventListener("submit", predict);
$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("key").value;
  begin();
});
$("slide").addEventListener("input", () => {
  own = Boolean(model.thresholds) && Number($("slide").value) === 0;
  draw();
});
$("back").addEventListener("click", back);
$("all").addEventListener("click", () => { every = true; draw(); });
$("file").addEventListener("change", () => show($("file").files[0] ?? null));
for (const name of ["dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) show(event.dataTransfer.files[0]);
  });
}
$("shown").addEventListener("error", () => { $("shown").hidden = true; });
begin();
