// What a router knows of a model or of a server: charts of its own counts, and a table of the places.

import { TimeChart } from "./charts.js";
import { fill, h } from "./dom.js";
import { count, duration } from "./figures.js";
import { span, spans } from "./spans.js";
import { store } from "./store.js";
import { t } from "./text.js";

/** The charts of one row and its history. `draw({ history })` changes them. */
export class Charts {
  constructor(bounds_us) {
    const most = duration(bounds_us.at(-1) / 1000);
    this.rate = new TimeChart(t("Requests per second"), count);
    this.latency = new TimeChart(t("Latency"), duration, { hint: t("estimated from buckets up to {n}", { n: most }) });
    this.flight = new TimeChart(t("Requests in flight"), count);
    this.elements = [h("div", { class: "section-head" }, h("h2", {}, t("Charts")), spans(() => this.draw(this.shown))), h("div", { class: "grid three" }, this.rate.element, this.latency.element, this.flight.element)];
  }

  draw(found) {
    this.shown = found;
    const { history } = found;
    const of = (field) => (history.size ? history.last(field, span) : []);
    const draw = (chart, series) => chart.draw(of("time"), series.map(([key, label, kind]) => ({ key, label, kind, values: of(key) })), store.at, span * 1000);
    draw(this.rate, [["rate", t("answered"), "rate"], ["failed", t("failed"), "bad"]]);
    draw(this.latency, [["p50", "p50", "p50"], ["p95", "p95", "p95"], ["p99", "p99", "p99"]]);
    draw(this.flight, [["flight", t("in flight"), "infer"]]);
  }
}

/** A table of models on servers; `first` is the title of the column with their names. */
export class Places {
  constructor(title, first) {
    this.body = h("tbody", {});
    const names = [first, "Version", "Requests", "Errors", "In flight", "Mean latency", "Wait", "State"];
    const head = h("thead", {}, h("tr", {}, names.map((each, i) => h("th", { scope: "col", class: i > 1 && i < 7 ? "number" : null }, t(each)))));
    this.element = h("section", { class: "card wide" }, h("h2", {}, title), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, h("table", { class: "table" }, head, this.body)));
  }

  /** rows   [name, address of its page, what the router knows of the model there] */
  draw(rows) {
    const key = JSON.stringify(rows);
    if (this.key === key) return;
    this.key = key;
    const numbers = ({ ok, failed, flight, mean_s, wait_s }) => [count(ok + failed), count(failed), count(flight), mean_s ? duration(mean_s * 1000) : "–", wait_s === null ? "–" : duration(wait_s * 1000)];
    fill(this.body, rows.map(([name, address, each]) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: address }, name)), h("td", {}, each.versions.join(", ") || "–"),
      numbers(each).map((text) => h("td", { class: "number" }, text)), h("td", {}, state(each)))));
  }
}

function state(each) {
  if (!each.versions.length) return t("not loaded");
  return each.ejected ? t("ejected after failures") : each.takes ? t("ready") : t("takes no requests");
}

export const serverPage = (name) => `#/server/${encodeURIComponent(name)}`;
export const modelPage = (name) => `#/model/${encodeURIComponent(name)}`;

/** The tab "Now" of a model of a router; return { update, close }. */
export function routed(panel, name, version) {
  const charts = new Charts(version.row.bounds_us);
  const places = new Places(t("Servers"), "Server");
  fill(panel, charts.elements, places.element);
  function update(found) {
    if (!found?.row.servers) return;
    charts.draw(found);
    places.draw(found.row.servers.map((each) => [each.name, serverPage(each.name), each]));
  }
  return { update, close: () => {} };
}
