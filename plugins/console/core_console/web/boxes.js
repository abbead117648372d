// Boxes on a picture: which output has them, and how they are drawn.

import { fill, h, s } from "./dom.js";
import { isText } from "./tensors.js";
import { t } from "./text.js";

const MOST = 300; // boxes that are drawn

// name → the corners of a row: [left, top, right, bottom]
const ORDERS = {
  "x1 y1 x2 y2": ([a, b, c, d]) => [a, b, c, d],
  "y1 x1 y2 x2": ([a, b, c, d]) => [b, a, d, c],
  "x y width height": ([a, b, c, d]) => [a, b, a + c, b + d],
  "centre width height": ([a, b, c, d]) => [a - c / 2, b - d / 2, a + c / 2, b + d / 2],
};

/**
 * Return { rows, scores, classes } of an output that has a box in each row, else null.
 *
 * A row has 4 to 7 numbers: the box, then a score from 0 to 1, then a class. Scores and classes may also be
 * outputs of their own, with a number for each row and "score" or "class" in the name.
 */
export function boxesOf(found, outputs) {
  const shape = found.shape.filter((size, at) => size !== 1 || at >= found.shape.length - 2);
  if (isText(found.datatype) || found.datatype === "BOOL" || shape.length !== 2) return null;
  const [number, width] = shape;
  if (width < 4 || width > 7 || (width !== 4 && number === 1 && !/box|det/i.test(found.name)) || found.values.length !== number * width) return null;
  const rows = Array.from({ length: number }, (_, i) => found.values.slice(i * width, (i + 1) * width));
  const beside = (pattern, fits = () => true) => outputs.find((each) => each !== found && pattern.test(each.name) && each.values.length === number && each.values.every(fits))?.values;
  const scored = width > 4 && rows.filter(isWhole).every((row) => row[4] >= 0 && row[4] <= 1);
  return {
    rows,
    scores: scored ? rows.map((row) => row[4]) : beside(/score|conf|prob/i, (each) => typeof each === "number"),
    classes: width > 5 ? rows.map((row) => row[5]) : beside(/class|label/i),
  };
}

// Detectors of a fixed size fill their last rows with zeros, -1 or NaN.
const isWhole = (row) => row.slice(0, 4).every(Number.isFinite);

/** Return an element with the picture, a canvas as the model gets it, and the boxes on it. */
export function boxesOn(canvas, { rows, scores, classes }) {
  const whole = rows.filter(isWhole);
  const unit = whole.every((row) => row.slice(0, 4).every((each) => Math.abs(each) <= 1.5)) ? [canvas.width, canvas.height] : [1, 1];
  let order = whole.every(([a, b, c, d]) => c >= a && d >= b) ? "x1 y1 x2 y2" : "x y width height";
  let least = scores ? 0.3 : 0;
  const size = Math.max(canvas.width, canvas.height);
  const drawing = s("svg", { class: "boxes", viewBox: `0 0 ${canvas.width} ${canvas.height}`, role: "img" });
  const number = h("small", {});

  const box = (row, i) => {
    const [left, top, right, bottom] = ORDERS[order](row).map((each, at) => each * unit[at % 2]);
    const text = [classes && String(classes[i]), scores && scores[i].toFixed(2)].filter(Boolean).join(" ");
    return s("g", {}, s("rect", { x: Math.min(left, right), y: Math.min(top, bottom), width: Math.abs(right - left), height: Math.abs(bottom - top), "stroke-width": size / 160 }),
      text && s("text", { x: left + size / 100, y: top + size / 22, "font-size": size / 24 }, text));
  };
  const draw = () => {
    const chosen = rows.map((row, i) => [row, i]).filter(([row, i]) => isWhole(row) && row.slice(0, 4).some(Boolean) && (!scores || scores[i] >= least));
    const text = chosen.length === 1 ? t("1 box on the picture") : t("{n} boxes on the picture", { n: chosen.length });
    drawing.setAttribute("aria-label", text);
    number.textContent = chosen.length > MOST ? t("The first {n} of {all} boxes", { n: MOST, all: chosen.length }) : text;
    fill(drawing, s("image", { href: canvas.toDataURL(), width: canvas.width, height: canvas.height }), chosen.slice(0, MOST).map(([row, i]) => box(row, i)));
  };
  const orders = h("select", { class: "input small", "aria-label": t("Numbers of a box"), onchange: () => { order = orders.value; draw(); } }, Object.keys(ORDERS).map((each) => h("option", { value: each, selected: each === order }, t(each))));
  const threshold = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: least, "aria-label": t("Least score"), oninput: () => { least = Number(threshold.value); draw(); } });
  draw();
  return h("div", { class: "stack" }, drawing, h("div", { class: "row-gap" }, h("label", { class: "choice" }, t("Numbers of a box"), orders), scores && h("label", { class: "choice" }, t("Least score"), threshold), number));
}
