// Charts in SVG. Colours come from the style sheet, so that both themes have their own.

import { h, s, fill } from "./dom.js";
import { t } from "./text.js";

/** A line without axes, for a row of a list. `draw(values)` changes it. */
export class Sparkline {
  constructor(width, height, label, kind = "rate") {
    this.width = width;
    this.height = height;
    this.area = s("path", { class: `spark-area ${kind}` });
    this.line = s("path", { class: `spark-line ${kind}` });
    this.element = s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, this.area, this.line);
  }

  /** Draw values, the oldest first; the right edge is now. NaN leaves a gap. */
  draw(values, most) {
    if (!values.length && this.isEmpty) return;
    this.isEmpty = !values.length;
    const { width, height } = this;
    const top = Math.max(1e-9, ...values.filter(Number.isFinite));
    const step = width / Math.max(1, most - 1);
    const start = width - (values.length - 1) * step;
    let line = "";
    let area = "";
    let begun = -1;
    values.forEach((value, i) => {
      const x = start + i * step;
      if (!Number.isFinite(value)) {
        if (begun >= 0) area += `L${(x - step).toFixed(1)} ${height}L${begun.toFixed(1)} ${height}Z`;
        begun = -1;
        return;
      }
      const y = height - 1.5 - (value / top) * (height - 4);
      line += `${begun < 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
      area += begun < 0 ? `M${x.toFixed(1)} ${height}L${x.toFixed(1)} ${y.toFixed(1)}` : `L${x.toFixed(1)} ${y.toFixed(1)}`;
      if (begun < 0) begun = x;
    });
    if (begun >= 0) area += `L${(start + (values.length - 1) * step).toFixed(1)} ${height}L${begun.toFixed(1)} ${height}Z`;
    this.line.setAttribute("d", line);
    this.area.setAttribute("d", area);
  }
}

/** Return round steps of an axis from 0 to at least `top`. */
export function ticks(top, wanted = 4) {
  if (!(top > 0)) return [0, 1];
  const rough = top / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= rough) * power;
  const found = [];
  for (let i = 0; i * step < top + step * 0.999; i += 1) found.push(i * step);
  return found;
}

/**
 * A chart over time with axes, a legend and the values under the pointer.
 *
 * series   [{ key, label, kind, values }]; values are as long as `times`
 * stacked  whether the series are drawn on top of each other
 */
export class TimeChart {
  constructor(title, format, { stacked = false, hint = "" } = {}) {
    this.format = format;
    this.stacked = stacked;
    this.title = title;
    this.svg = s("svg", { class: "chart", viewBox: "0 0 560 190", role: "img", "aria-label": title });
    this.legend = h("ul", { class: "legend" });
    this.tip = h("div", { class: "chart-tip", hidden: true });
    this.element = h("figure", { class: "card figure" },
      h("figcaption", {}, h("span", {}, title), hint && h("small", {}, hint)), this.legend, h("div", { class: "chart-box" }, this.svg, this.tip));
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => { this.tip.hidden = true; this.cursor?.remove(); });
  }

  draw(times, series, now, span) {
    Object.assign(this, { times, series, now, span });
    const sums = times.map((_, i) => series.reduce((sum, each) => sum + (Number.isFinite(each.values[i]) ? each.values[i] : 0), 0));
    const all = this.stacked ? sums : series.flatMap((each) => each.values);
    const steps = ticks(Math.max(0, ...all.filter(Number.isFinite)));
    const top = steps[steps.length - 1];
    const y = (value) => 164 - (value / top) * 152;
    const x = (time) => 552 - ((now - time) / span) * 496;
    this.x = x;
    const grid = steps.map((value) => s("g", { class: "grid" }, s("line", { x1: 56, x2: 552, y1: y(value), y2: y(value) }), s("text", { x: 48, y: y(value) + 4, "text-anchor": "end" }, this.format(value))));
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => s("text", { class: "axis", x: 552 - part * 496, y: 184, "text-anchor": part === 0 ? "end" : part === 1 ? "start" : "middle" }, part ? `−${shortSpan(part * span)}` : t("now")));
    const below = times.map(() => 0);
    const shapes = series.map((each) => this.stacked ? this.layer(each, below, x, y) : s("path", { class: `line ${each.kind}`, d: path(times, each.values, x, y) }));
    fill(this.svg, grid, marks, shapes);
    fill(this.legend, series.map((each) => {
      const known = each.values.filter(Number.isFinite);
      const last = known.length ? known[known.length - 1] : NaN;
      return h("li", {}, h("i", { class: `key ${each.kind}` }), each.label, h("b", {}, this.format(last)));
    }));
    const words = series.map((each) => { const known = each.values.filter(Number.isFinite); return known.length ? `${each.label}: ${this.format(known[known.length - 1])}` : ""; }).filter(Boolean).join(", ");
    this.svg.setAttribute("aria-label", `${this.title}. ${words}`);
  }

  layer(each, below, x, y) {
    const up = [];
    const down = [];
    this.times.forEach((time, i) => {
      const value = Number.isFinite(each.values[i]) ? each.values[i] : 0;
      down.unshift(`${x(time).toFixed(1)} ${y(below[i]).toFixed(1)}`);
      below[i] += value;
      up.push(`${x(time).toFixed(1)} ${y(below[i]).toFixed(1)}`);
    });
    return s("path", { class: `layer ${each.kind}`, d: up.length ? `M${[...up, ...down].join("L")}Z` : "" });
  }

  point(event) {
    if (!this.times?.length) return;
    const box = this.svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * 560;
    let best = 0;
    this.times.forEach((time, i) => { if (Math.abs(this.x(time) - at) < Math.abs(this.x(this.times[best]) - at)) best = i; });
    const shown = this.x(this.times[best]);
    this.cursor?.remove();
    this.cursor = s("line", { class: "cursor", x1: shown, x2: shown, y1: 12, y2: 164 });
    this.svg.append(this.cursor);
    fill(this.tip, h("span", {}, `−${shortSpan(this.now - this.times[best])}`), this.series.map((each) => h("span", {}, h("i", { class: `key ${each.kind}` }), each.label, " ", h("b", {}, this.format(each.values[best])))));
    this.tip.hidden = false;
    this.tip.style.left = `${Math.min(box.width - 150, Math.max(0, (shown / 560) * box.width + 8))}px`;
  }
}

function path(times, values, x, y) {
  let found = "";
  let open = false;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) { open = open && i + 1 < values.length && Number.isFinite(values[i + 1]); return; }
    const place = `${x(times[i]).toFixed(1)} ${y(value).toFixed(1)}`;
    found += `${open ? "L" : "M"}${place}`;
    // A value between two gaps is a point.
    if (!open && !Number.isFinite(values[i + 1])) found += `h0.1`;
    open = true;
  });
  return found;
}

function shortSpan(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return seconds % 60 && minutes < 10 ? `${minutes}:${String(seconds % 60).padStart(2, "0")}` : `${minutes} min`;
}

/** Return a list of horizontal bars: [{ label, value, text, kind, title }]. */
export function bars(rows, { top = 0, label = "" } = {}) {
  const most = top || Math.max(1e-12, ...rows.map((each) => each.value));
  return h("ul", { class: "bars", "aria-label": label || null }, rows.map((each) => h("li", { title: each.title || null },
    h("span", { class: "bar-label" }, each.label),
    h("span", { class: "bar-track" }, each.value > 0 ? h("span", { class: `bar ${each.kind || ""}`, style: { width: `${Math.min(1, each.value / most) * 100}%` } }) : null),
    h("span", { class: "bar-text" }, each.text))));
}

/** Return one bar that is divided into parts: [{ label, value, text, kind }]. */
export function divided(parts, label) {
  const total = parts.reduce((sum, each) => sum + (each.value || 0), 0) || 1;
  return h("div", { class: "divided" },
    h("div", { class: "divided-bar", role: "img", "aria-label": `${label}: ${parts.map((each) => `${each.label} ${each.text}`).join(", ")}` },
      parts.map((each) => h("span", { class: `part ${each.kind}`, style: { "flex-grow": String(Math.max(0, each.value || 0) / total) } }))),
    h("ul", { class: "legend" }, parts.map((each) => h("li", {}, h("i", { class: `key ${each.kind}` }), each.label, h("b", {}, each.text)))));
}

/** The lanes of instances: a cell for each second of the last minute, the darker the busier. */
export class Lanes {
  constructor(small = false) {
    this.small = small;
    this.element = h("div", { class: `lanes ${small ? "small" : ""}` });
    this.rows = [];
  }

  draw(parts, lanes, label, most = 99) {
    const names = Object.keys(lanes).slice(0, most);
    // Rows are used again by their position: a list that scrolls makes no elements.
    this.rows.splice(names.length).forEach((row) => row.element.remove());
    names.forEach((name, position) => {
      const row = (this.rows[position] ||= this.row());
      if (row.name && row.name.data !== name) row.name.data = name;
      const values = parts.get(name) || [];
      const [now, busy] = lanes[name];
      const shown = label(name, now, busy);
      const described = `${name}: ${shown}`;
      if (row.described !== described) {
        row.described = described;
        row.text.textContent = shown;
        row.svg.setAttribute("aria-label", described);
        row.element.classList.toggle("busy", now > 0);
      }
      const key = values.join();
      if (row.key === key) return;
      row.key = key;
      const cells = new Map();
      const offset = 60 - values.length;
      values.forEach((value, i) => {
        const level = value <= 0 ? 0 : Math.min(4, Math.ceil(value * 4));
        cells.set(level, `${cells.get(level) || ""}M${(offset + i) * 4} 0h3v12h-3z`);
      });
      row.levels.forEach((each, level) => each.setAttribute("d", (level === 0 && offset ? empty(offset) : "") + (cells.get(level) || "")));
    });
  }

  row() {
    const levels = [0, 1, 2, 3, 4].map((level) => s("path", { class: `lane-cell l${level}` }));
    const svg = s("svg", { viewBox: "0 0 240 12", preserveAspectRatio: "none", role: "img" }, levels);
    const text = h("span", { class: "lane-text" });
    const name = this.small ? null : document.createTextNode("");
    const element = h("div", { class: "lane" }, this.small ? null : h("span", { class: "lane-name" }, h("i", { class: "lane-dot" }), name), svg, this.small ? null : text);
    this.element.append(element);
    return { element, svg, levels, text, name, described: "", key: null };
  }
}

function empty(count) {
  let found = "";
  for (let i = 0; i < count; i += 1) found += `M${i * 4} 0h3v12h-3z`;
  return found;
}
