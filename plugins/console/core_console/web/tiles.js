// Tiles: what the server or the router does as a whole, one number in each.

import { Sparkline } from "./charts.js";
import { h, setText } from "./dom.js";
import { count, duration } from "./figures.js";
import { store } from "./store.js";
import { t } from "./text.js";

export class Tiles {
  /** names   [name, label] of each tile; "rate" and "latency" have a line */
  constructor(label, names) {
    this.parts = {};
    this.rateLine = new Sparkline(120, 34, t("Requests per second, last minute"));
    this.latencyLine = new Sparkline(120, 34, t("Latency, last minute"), "latency");
    const lines = { rate: this.rateLine.element, latency: this.latencyLine.element };
    this.element = h("section", { class: "tiles", "aria-label": label }, names.map(([name, text]) => this.tile(name, text, lines[name])));
  }

  tile(name, label, chart) {
    const value = h("b", {}, "–");
    const more = h("small", {});
    this.parts[name] = [value, more];
    return h("div", { class: `tile t-${name}` }, h("span", { class: "tile-label" }, label), value, more, chart);
  }

  put(name, text, more = "", kind = "") {
    const [value, small] = this.parts[name];
    setText(value, text);
    setText(small, more);
    value.className = kind;
  }

  /** Show rate, latency and errors of all requests; `all` counts the errors so far. */
  requests(all) {
    const { totals } = store;
    const live = totals.size > 0;
    this.put("rate", live ? count(totals.now("rate")) : "–", live ? t("peak {n}", { n: count(Math.max(0, ...totals.last("rate", 900))) }) : "");
    this.rateLine.draw(live ? totals.last("rate", 60) : [], 60);
    const means = live ? totals.last("mean", 60) : [];
    const known = means.filter(Number.isFinite);
    this.put("latency", known.length ? duration(known[known.length - 1]) : "–", known.length ? t("peak {n}", { n: duration(Math.max(...known)) }) : t("no request yet"));
    this.latencyLine.draw(means, 60);
    const failing = live ? totals.now("failed") : 0;
    this.put("failed", count(failing), t("{n} in all", { n: count(all) }), failing > 0 ? "bad" : "");
  }
}
