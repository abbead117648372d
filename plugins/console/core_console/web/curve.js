// A chart of points that are joined: one number against another, such as latency against rate.

import { ticks } from "./charts.js";
import { h, s } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [520, 220, 58, 26];

/**
 * Return the chart, with its legend.
 *
 * lines       [{ name, title, points: [{ x, y, label }] }]; the name is that of its colour, and the default title
 * across, up  number → text of an axis
 */
export function curve(lines, { label, across, up }) {
  const points = lines.flatMap((each) => each.points).filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
  const [right, high] = ["x", "y"].map((axis) => { const found = ticks(Math.max(1e-9, ...points.map((each) => each[axis]))); return found[found.length - 1]; });
  const x = (value) => LEFT + (value / right) * (WIDTH - LEFT - 16);
  const y = (value) => HEIGHT - BOTTOM - (value / high) * (HEIGHT - BOTTOM - 12);
  const said = lines.map((each) => `${each.title || each.name}: ${each.points.map((one) => `${one.label} ${across(one.x)} ${up(one.y)}`).join(", ")}`).join("; ");
  return h("div", {}, s("svg", { class: "chart curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${label}. ${said}` },
    s("g", { class: "grid" }, ticks(high).map((each) => [s("line", { x1: LEFT, x2: WIDTH - 16, y1: y(each), y2: y(each) }), s("text", { x: LEFT - 8, y: y(each) + 4, "text-anchor": "end" }, up(each))]), ticks(right).map((each) => s("text", { x: each < right ? x(each) : WIDTH, y: HEIGHT - 6, "text-anchor": each < right ? "middle" : "end" }, across(each)))),
    lines.map((each) => {
      const shown = each.points.filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y));
      return s("g", {}, s("path", { class: `line ${each.name}`, d: shown.map((one, i) => `${i ? "L" : "M"}${x(one.x).toFixed(1)} ${y(one.y).toFixed(1)}`).join("") }),
        shown.map((one) => s("circle", { class: `point ${each.name}`, cx: x(one.x), cy: y(one.y), r: 3.5 }, s("title", {}, `${one.label}: ${across(one.x)}, ${each.title ? "" : `${each.name} `}${up(one.y)}`))));
    })),
  h("ul", { class: "legend" }, lines.map((each) => h("li", {}, h("i", { class: `key ${each.name}` }), each.title || each.name))));
}
