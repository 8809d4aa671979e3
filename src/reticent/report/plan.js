// Looks plans up in exact tables; computes nothing but places on the screen.
const data = JSON.parse(document.getElementById("data").textContent);
const names = ["risk", "rows", "batch", "epochs"];
const at = (id) => document.getElementById(id);
const percent = (x) => {
  const p = 100 * x;
  return Number(p < 1 ? p.toPrecision(2) : p >= 99.95 ? p.toFixed(3) : p.toFixed(1)) + " %";
};
const up = (x) => (Math.ceil(x * 1000 - 1e-9) / 1000).toFixed(3);
function place() {
  return names.reduce((sum, name) => sum * data.stops[name].length + Number(at(name).value), 0);
}
function element(svg, kind, attributes, words) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (words !== undefined) made.textContent = words;
  svg.append(made);
}
function axes(svg, x, y, labelX, labelY) {
  svg.replaceChildren();
  for (const [v, words] of x.ticks) {
    element(svg, "line", {class: "grid", x1: x(v), x2: x(v), y1: 12, y2: 252});
    element(svg, "text", {x: x(v), y: 268, "text-anchor": "middle"}, words);
  }
  for (const [v, words] of y.ticks) {
    element(svg, "line", {class: "grid", x1: 66, x2: 412, y1: y(v), y2: y(v)});
    element(svg, "text", {x: 60, y: y(v) + 4, "text-anchor": "end"}, words);
  }
  element(svg, "text", {class: "label", x: 239, y: 292, "text-anchor": "middle"}, labelX);
  if (labelY) element(svg, "text", {class: "label", transform: "translate(11 132) rotate(-90)", "text-anchor": "middle"}, labelY);
}
function scale(low, high, from, to, ticks, log) {
  const f = log ? Math.log10 : (v) => v;
  const s = (v) => from + (f(Math.min(Math.max(v, low), high)) - f(low)) / (f(high) - f(low)) * (to - from);
  s.ticks = ticks;
  return s;
}
const points = (xs, ys, x, y) => xs.map((v, k) => x(v).toFixed(1) + "," + y(ys[k]).toFixed(1)).join(" ");
function draw(plan, curves) {
  const [trueRates, chances, losses, used, unused] = curves;
  let svg = at("plot-density");
  const top = 1.06 * Math.max(...used, ...unused);
  const step = (losses[losses.length - 1] - losses[0]) / 4;
  let x = scale(losses[0], losses[losses.length - 1], 66, 412, [0, 1, 2, 3, 4].map((k) => [losses[0] + k * step, (losses[0] + k * step).toFixed(1)]));
  let y = scale(0, top, 252, 12, []);
  axes(svg, x, y, "evidence for use (log-likelihood ratio)", "density");
  for (const [values, kind] of [[unused, "unused"], [used, "used"]]) {
    element(svg, "polygon", {class: kind, points: `${x(losses[0])},252 ` + points(losses, values, x, y) + ` ${x(losses[losses.length - 1])},252`});
  }
  const boundary = Math.log((1 - plan.prior) / plan.prior);
  element(svg, "line", {class: "boundary", x1: x(boundary), x2: x(boundary), y1: 12, y2: 252});
  svg = at("plot-belief");
  const powers = [0, -2, -4, -6, -8].map((p) => [10 ** p, p === 0 ? "1" : "1e" + p]);
  x = scale(0.5, 1, 66, 412, [0.5, 0.6, 0.7, 0.8, 0.9, 1].map((v) => [v, percent(v)]));
  y = scale(1e-8, 1, 252, 12, powers, true);
  axes(svg, x, y, "belief in the truth", "probability of more");
  element(svg, "polyline", {class: "curve", points: points(data.beliefs, chances, x, y)});
  element(svg, "line", {class: "chance", x1: 66, x2: 412, y1: y(plan.delta), y2: y(plan.delta)});
  element(svg, "circle", {class: "here", cx: x(plan.belief), cy: y(plan.delta), r: 5});
  svg = at("plot-tradeoff");
  const rates = [1e-4, 1e-3, 1e-2, 0.1, 1].map((v) => [v, percent(v)]);
  x = scale(1e-4, 1, 66, 412, rates, true);
  y = scale(1e-4, 1, 252, 12, rates, true);
  axes(svg, x, y, "false-positive rate", "true-positive rate");
  element(svg, "line", {class: "chance", x1: x(1e-4), y1: y(1e-4), x2: x(1), y2: y(1)});
  element(svg, "polyline", {class: "curve", points: points(data.false, trueRates, x, y)});
  element(svg, "circle", {class: "here", cx: x(plan.fpr), cy: y(plan.tpr), r: 5});
  cost();
}
function cost() {
  const svg = at("plot-cost"), risks = data.stops.risk, per = data.plans.length / risks.length;
  const rest = place() % per;
  const noises = risks.map((_, k) => data.plans[k * per + rest].noise_multiplier);
  const high = 1.1 * Math.max(...noises);
  const x = scale(-0.3, risks.length - 0.7, 66, 412, risks.map((r, k) => [k, data.kind === "epsilon" ? String(r) : percent(r)]));
  const y = scale(0, high, 252, 12, [0, 0.25, 0.5, 0.75].map((s) => [s * high, (s * high).toFixed(1)]));
  axes(svg, x, y, at("risk").parentElement.querySelector("span").textContent, "noise multiplier");
  element(svg, "polyline", {class: "other", points: points(risks.map((_, k) => k), noises, x, y)});
  noises.forEach((noise, k) => element(svg, "circle", {class: k === Number(at("risk").value) ? "here" : "stop", cx: x(k), cy: y(noise), r: 5}));
}
function move() {
  for (const name of names) {
    const value = data.stops[name][Number(at(name).value)];
    at(name + "-value").textContent = name === "risk" && data.kind !== "epsilon" ? percent(value) : value.toLocaleString("en");
  }
  const plan = data.plans[place()];
  at("why").textContent = plan ? "" : "The batch is larger than the table: no record could be left out. Move a slider.";
  if (!plan) return;
  at("noise_multiplier").textContent = plan.noise_multiplier;
  for (const id of ["epsilon", "epsilon_other", "advantage"]) at(id).textContent = up(plan[id]);
  for (const id of ["belief", "prior", "tpr", "fpr", "accuracy", "sampling_rate"]) at(id).textContent = percent(plan[id]);
  at("delta").textContent = plan.delta;
  at("relation").textContent = plan.relation;
  at("other").textContent = plan.relation === "add/remove" ? "replace-one" : "add/remove";
  at("steps").textContent = plan.steps.toLocaleString("en");
  at("sentence").textContent =
    `Before the release somebody believes with ${percent(plan.prior)} that your record was used; after it with at most ` +
    `${percent(plan.belief)}, except with probability ${plan.delta}. The best attacker there can be guesses right in ${percent(plan.accuracy)} of cases.`;
  draw(plan, data.curves[place()]);
}
for (const name of names) at(name).addEventListener("input", move);
move();
