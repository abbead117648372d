// The graph of an ensemble: steps in columns, tensors on the edges, times on both.

import { recent } from "./advice.js";
import { h, s, fill } from "./dom.js";
import { duration } from "./figures.js";
import { store, summary } from "./store.js";
import { t } from "./text.js";

const WIDTH = 178;
const HEIGHT = 62;
const GAP_X = 132;
const GAP_Y = 26;

/**
 * Return { element, update } of the graph of steps: [{ model, inputs, outputs, condition, reads }], and of loops:
 * [{ first, last, while, turns }]. The maps are tensor → tensor; a step reads other tensors for its condition.
 */
export function graph(steps, loops, name) {
  const makers = new Map();
  steps.forEach((step, i) => Object.values(step.outputs).forEach((tensor) => makers.set(tensor, i)));
  const depth = steps.map(() => -1);
  const makersOf = (i) => [...Object.values(steps[i].inputs), ...steps[i].reads].map((tensor) => makers.get(tensor)).filter((each) => each !== undefined && each !== i);
  const depthOf = (i, way = new Set()) => {
    if (depth[i] >= 0 || way.has(i)) return Math.max(0, depth[i]);
    way.add(i);
    const before = makersOf(i);
    return (depth[i] = before.length ? 1 + Math.max(...before.map((each) => depthOf(each, way))) : 1);
  };
  steps.forEach((_, i) => depthOf(i));
  const last = Math.max(1, ...depth) + 1;
  const columns = new Map();
  const place = (column) => { const row = columns.get(column) || 0; columns.set(column, row + 1); return row; };
  const nodes = steps.map((step, i) => ({ step, i, column: depth[i], row: place(depth[i]) }));
  const start = { column: 0, row: 0 };
  const end = { column: last, row: 0 };
  const rows = Math.max(...columns.values(), 1);
  const width = 66 + GAP_X + (last - 1) * (WIDTH + GAP_X) + 66;
  const top = 16 + 18 * loops.length;
  const height = rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * top + (loops.length ? 8 : 0);
  const box = (node) => {
    const inColumn = columns.get(node.column) || 1;
    const small = node === start || node === end;
    const x = node.column === 0 ? 4 : 66 + GAP_X + (node.column - 1) * (WIDTH + GAP_X);
    const y = top + ((rows - inColumn) * (HEIGHT + GAP_Y)) / 2 + node.row * (HEIGHT + GAP_Y);
    return { x, y, w: small ? 62 : WIDTH, h: HEIGHT };
  };
  const edges = [];
  const used = new Set(steps.flatMap((step) => [...Object.values(step.inputs), ...step.reads]));
  const between = (from, to, tensor, maker, decides = false) => {
    const same = edges.find((each) => each.from === from && each.to === to);
    if (same) same.tensors.push(tensor);
    else edges.push({ from, to, tensors: [tensor], maker, decides });
  };
  nodes.forEach((node) => Object.values(node.step.inputs).forEach((tensor) => {
    const maker = makers.get(tensor);
    between(maker === undefined ? start : nodes[maker], node, tensor, maker);
  }));
  nodes.forEach((node) => node.step.reads.filter((tensor) => !Object.values(node.step.inputs).includes(tensor)).forEach((tensor) => between(nodes[makers.get(tensor)], node, tensor, makers.get(tensor), true)));
  makers.forEach((maker, tensor) => { if (!used.has(tensor)) between(nodes[maker], end, tensor, maker); });

  const svg = s("svg", { class: "ensemble", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "" });
  const element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("The steps") }, svg);

  // The larger of two loops is drawn around the smaller one.
  const frames = [...loops].sort((a, b) => b.last - b.first - a.last + a.first).map((loop, i) => ({ ...loop, margin: 12 + 18 * (loops.length - 1 - i) }));

  function time(i) {
    const model = store.models.get(steps[i].model);
    const main = model && summary(model).main;
    if (!main || main.row.state !== "READY") return NaN;
    const now = recent(main.history, "mean");
    return Number.isFinite(now) ? now : main.row.ok ? main.row.total_ns / main.row.ok / 1e6 : NaN;
  }

  function update() {
    const times = steps.map((_, i) => time(i));
    const done = new Array(steps.length);
    const doneAt = (i) => (done[i] ??= Math.max(0, ...makersOf(i).map(doneAt)) + (times[i] || 0));
    steps.forEach((_, i) => doneAt(i));
    const slow = new Set();
    let at = done.indexOf(Math.max(...done));
    while (at >= 0 && !slow.has(at)) {
      slow.add(at);
      const before = makersOf(at);
      at = before.length ? before.reduce((a, b) => (done[a] >= done[b] ? a : b)) : -1;
    }
    const most = Math.max(1e-9, ...times.filter(Number.isFinite));
    fill(svg, frames.map((loop) => {
      const boxes = nodes.slice(loop.first, loop.last + 1).map(box);
      const [x, y] = [Math.min(...boxes.map((b) => b.x)) - loop.margin, Math.min(...boxes.map((b) => b.y)) - loop.margin];
      const [right, bottom] = [Math.max(...boxes.map((b) => b.x + b.w)) + loop.margin, Math.max(...boxes.map((b) => b.y + b.h)) + loop.margin];
      const label = `↻ ${t("at most {n} turns", { n: loop.turns })} ${loop.while ? `while ${loop.while}` : ""}`;
      return s("g", { class: "loop" }, s("title", {}, label), s("rect", { x, y, width: right - x, height: bottom - y, rx: 14 }), s("text", { x: x + 10, y: bottom + 13 }, cut(label, Math.max(44, Math.round((right - x) / 6)))));
    }), edges.map((edge) => {
      const a = box(edge.from);
      const b = box(edge.to);
      const [x1, y1, x2, y2] = [a.x + a.w, a.y + a.h / 2, b.x - 7, b.y + b.h / 2];
      const bend = Math.max(30, (x2 - x1) / 2);
      const thick = (edge.maker === undefined || slow.has(edge.maker)) && (edge.to === end ? slow.has(edge.maker) : slow.has(edge.to.i));
      const when = edge.maker === undefined ? "" : duration(done[edge.maker]);
      const names = edge.tensors.length > 1 ? `${edge.tensors[0]} +${edge.tensors.length - 1}` : edge.tensors[0];
      return s("g", { class: `edge ${thick ? "slow" : ""} ${edge.decides ? "decides" : ""}` }, s("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }), s("path", { class: "tip", d: `M${x2 - 1} ${y2 - 4}l7 4-7 4z` }),
        s("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 7, "text-anchor": "middle" }, s("title", {}, edge.tensors.join(", ")), cut(names, 17)), when && s("text", { class: "when", x: (x1 + x2) / 2, y: (y1 + y2) / 2 + 15, "text-anchor": "middle" }, `${t("after")} ${when}`));
    }), [[start, t("request")], [end, t("answer")]].map(([node, label]) => { const b = box(node); return s("g", { class: "terminal" }, s("rect", { x: b.x, y: b.y + 14, width: b.w, height: b.h - 28, rx: 17 }), s("text", { x: b.x + b.w / 2, y: b.y + b.h / 2 + 4, "text-anchor": "middle" }, label)); }),
    nodes.map((node) => {
      const b = box(node);
      return s("a", { href: `#/model/${encodeURIComponent(node.step.model)}`, class: `step ${slow.has(node.i) ? "slow" : ""} ${node.step.condition ? "conditional" : ""}` }, s("rect", { x: b.x, y: b.y, width: b.w, height: b.h, rx: 10 }), s("rect", { class: "share", x: b.x + 12, y: b.y + b.h - 12, width: Math.max(2, (b.w - 24) * ((times[node.i] || 0) / most)), height: 4, rx: 2 }),
        node.step.condition && s("text", { class: "step-condition", x: b.x + 2, y: b.y - 6 }, s("title", {}, node.step.condition), cut(node.step.condition, 30)),
        s("text", { class: "step-name", x: b.x + 12, y: b.y + 24 }, cut(node.step.model, 22)), s("text", { class: "step-time", x: b.x + 12, y: b.y + 42 }, Number.isFinite(times[node.i]) ? duration(times[node.i]) : t("no request yet")));
    }));
    svg.setAttribute("aria-label", `${name}: ${steps.map((step, i) => `${step.model} ${duration(times[i])}`).join(", ")}`);
  }
  return { element, update };
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
