// Answers: each output as bars, boxes on the picture, a table, a picture or JSON.

import { boxesOf, boxesOn } from "./boxes.js";
import { bars } from "./charts.js";
import { button, copy, fill, h } from "./dom.js";
import { count } from "./figures.js";
import { drawn, pictureOf } from "./images.js";
import { isText, nested } from "./tensors.js";
import { t } from "./text.js";

const MOST_CELLS = 2000;

/**
 * Return the element of an output: { name, datatype, shape, values, classes }.
 *
 * batched   whether the first size is that of the batch
 * outputs   all outputs of the answer
 * picture   the canvas with the picture that was sent, if one was
 */
export function output(found, batched, { outputs, picture: sent }) {
  const inner = batched ? found.shape.slice(1) : found.shape;
  const views = [];
  if (found.classes) views.push(["Classes", () => classBars(found.classes)]);
  const boxes = sent && !found.classes && boxesOf(found, outputs);
  if (boxes) views.push(["Boxes", () => boxesOn(sent, boxes)]);
  const numeric = !isText(found.datatype) && found.datatype !== "BOOL";
  if (numeric && inner.length === 1 && inner[0] > 1 && inner[0] <= 5000 && found.values.length === inner[0]) views.push(["Bars", () => valueBars(found.values)]);
  const picture = numeric && pictureOf(inner);
  if (picture && found.values.length === picture.height * picture.width * picture.channels && picture.height > 4) views.push(["Image", () => { const canvas = drawn(found.values, picture); canvas.className = "pixels large"; return canvas; }]);
  if (isText(found.datatype) && !found.classes) views.push(["Text", () => h("div", { class: "texts" }, found.values.map((each) => h("p", {}, each)))]);
  if (!found.classes) views.push(["Table", () => table(found.values, found.shape)]);
  const json = () => JSON.stringify(found.classes ? found.values : nested(found.values, found.shape), null, found.values.length > 64 ? 0 : 1);
  views.push(["JSON", () => h("pre", { class: "code", tabindex: "0" }, json().slice(0, 100000))]);
  const box = h("div", { class: "output-body" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": t("View of {name}", { name: found.name }) });
  const press = (name) => {
    for (const each of chips.children) each.setAttribute("aria-pressed", String(each.dataset.view === name));
    fill(box, views.find(([each]) => each === name)[1]());
  };
  for (const [name] of views) chips.append(h("button", { type: "button", class: "chip", dataset: { view: name }, onclick: () => press(name) }, t(name)));
  press(views[0][0]);
  return h("section", { class: "output" }, h("header", {}, h("b", {}, found.name), h("code", {}, `${found.datatype} [${found.shape.join(", ")}]`), chips, button(t("Copy"), () => copy(json(), t("Copied")), { class: "button plain" }, "copy")), box);
}

function classBars(classes) {
  const total = classes.reduce((sum, each) => sum + Math.abs(each.value), 0);
  const parts = classes.every((each) => each.value >= 0 && each.value <= 1.000001);
  return bars(classes.map((each, i) => ({ label: each.label || String(each.index), value: Math.max(0, each.value), kind: i ? "rest" : "best", text: parts && total ? `${(each.value * 100).toFixed(1)} %` : count(each.value) })), { top: parts ? 1 : 0, label: t("Classes") });
}

function valueBars(values) {
  const rows = values.map((value, index) => ({ value, index })).sort((a, b) => b.value - a.value).slice(0, 10);
  return classBars(rows.map(({ value, index }) => ({ value, index, label: String(index) })));
}

function table(values, shape) {
  const width = shape.length ? shape[shape.length - 1] : 1;
  const rows = [];
  for (let i = 0; i < Math.min(values.length, MOST_CELLS); i += width || 1) rows.push(values.slice(i, i + Math.min(width, 64)));
  const shown = (each) => (typeof each === "number" ? (Number.isInteger(each) ? String(each) : String(Number(each.toPrecision(6)))) : String(each));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("Table") }, h("table", { class: "table values" }, h("tbody", {}, rows.slice(0, 100).map((row, i) => h("tr", {}, h("th", { scope: "row" }, String(i)), row.map((each) => h("td", { class: "number" }, shown(each))))))),
    values.length > MOST_CELLS || rows.length > 100 || width > 64 ? h("p", { class: "hint" }, t("The first values of {n}.", { n: values.length })) : null);
}
