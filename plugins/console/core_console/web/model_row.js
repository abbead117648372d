// ModelRow: one model in the list of the overview.

import { Lanes, Sparkline } from "./charts.js";
import { h, setAttribute, setText } from "./dom.js";
import { bytes, count, duration, percent } from "./figures.js";
import { sizesOf } from "./history.js";
import { isRouter, latencyOf, summary } from "./store.js";
import { t } from "./text.js";

const SHOWN = 60; // seconds

// Narrow screens show them above the numbers: the list has no head there.
const LABELS = { "c-rate": "Requests/s", "c-latency": "Latency", "c-queue": "Queue" };
const ROUTED = { ...LABELS, "c-queue": "In flight" };

export const STATES = { READY: "ready", LOADING: "loading", UNLOADING: "loading", UNAVAILABLE: "failed", UNLOADED: "unloaded" };

/** Return the versions that serve, each with its share of the last minute's requests: "v1 90 % · v2 10 %". */
function shares(model, numbers) {
  const sums = numbers.map((each) => [each, model.versions.get(each).history.last("rate", SHOWN).filter(Number.isFinite).reduce((sum, rate) => sum + rate, 0)]);
  const all = sums.reduce((sum, [, each]) => sum + each, 0);
  return sums.sort(([a], [b]) => a - b).map(([each, sum]) => (all ? `v${each} ${percent(sum / all)}` : `v${each}`)).join(" · ");
}

export class ModelRow {
  constructor() {
    const routed = isRouter();
    const labels = routed ? ROUTED : LABELS;
    this.dot = h("i", { class: "dot" });
    this.name = h("a", { class: "row-name" });
    this.kind = h("span", { class: "row-kind" });
    this.state = h("span", { class: "badge" });
    this.reason = h("span", { class: "row-reason" });
    this.rate = h("b", {});
    this.rateLine = new Sparkline(96, 26, t("Requests per second, last minute"));
    this.latency = h("b", {});
    this.latencyMore = h("small", {});
    this.latencyLine = new Sparkline(96, 26, t("Latency, last minute"), "latency");
    this.batch = h("b", {});
    this.batchMore = h("small", {});
    this.queue = h("b", {});
    this.queueMore = h("small", {});
    this.lanes = new Lanes(true);
    this.memory = h("b", {});
    this.errors = h("b", {});
    const cell = (name, ...children) => h("div", { role: "cell", class: `cell ${name}`, dataset: labels[name] ? { label: t(labels[name]) } : {} }, ...children);
    this.numbers = [
      cell("c-rate", h("span", { class: "value" }, this.rate), this.rateLine.element),
      cell("c-latency", h("span", { class: "value" }, this.latency, this.latencyMore), this.latencyLine.element),
      cell("c-queue", h("span", { class: "value" }, this.queue, this.queueMore)),
      cell("c-batch", h("span", { class: "value" }, this.batch, this.batchMore)),
      routed ? null : cell("c-lanes", this.lanes.element),
      routed ? null : cell("c-memory", this.memory),
      cell("c-errors", this.errors),
    ].filter(Boolean);
    this.message = cell("c-message", this.reason);
    this.message.setAttribute("aria-colspan", "7");
    this.element = h("div", { role: "row", class: "model-row" },
      cell("c-name", this.dot, h("div", { class: "row-names" }, this.name, h("span", { class: "row-sub" }, this.state, this.kind))),
      ...this.numbers, this.message);
    this.element.addEventListener("click", (event) => { if (event.target.closest("a,button") === null && !getSelection().toString()) this.name.click(); });
  }

  show(model, index) {
    const found = summary(model);
    const main = found.main;
    const ready = found.state === "READY";
    setAttribute(this.element, "aria-rowindex", String(index + 2));
    if (this.shown !== model.name) {
      this.shown = model.name;
      setText(this.name, model.name);
      this.name.href = `#/model/${encodeURIComponent(model.name)}`;
    }
    if (this.was !== found.state) {
      this.was = found.state;
      this.dot.className = `dot ${STATES[found.state]}`;
      this.state.className = `badge ${STATES[found.state]}`;
    }
    setText(this.state, t(found.state === "READY" ? "ready" : found.state === "UNAVAILABLE" ? "failed" : found.state.toLowerCase()));
    this.state.hidden = ready;
    const versions = main?.row.versions ? main.row.versions.map((each) => `v${each}`).join(" ") : found.versions.length > 1 ? shares(model, found.versions) : found.versions.length && main.row.version !== 1 ? `v${found.versions[0]}` : "";
    setText(this.kind, [ready ? main.row.platform : "", versions].filter(Boolean).join(" · "));
    if (this.ready !== ready) {
      this.ready = ready;
      for (const each of this.numbers) each.hidden = !ready;
      this.message.hidden = ready;
    }
    this.element.classList.toggle("is-failed", found.state === "UNAVAILABLE");
    if (!ready) {
      setText(this.reason, found.reason || (found.state === "UNLOADED" ? t("not loaded") : ""));
      this.reason.title = found.reason || "";
      return;
    }
    this.numbersOf(found, main);
  }

  numbersOf(found, { row, history }) {
    const live = history.size > 0;
    setText(this.rate, live ? count(found.rate) : "–");
    this.rate.classList.toggle("quiet", !(found.rate > 0));
    this.rateLine.draw(live ? history.last("rate", SHOWN) : [], SHOWN);
    const p50 = history.now("p50");
    const latency = latencyOf({ row, history });
    setText(this.latency, Number.isFinite(p50) ? duration(p50) : duration(latency));
    setText(this.latencyMore, Number.isFinite(p50) ? `p95 ${duration(history.now("p95"))} · p99 ${duration(history.now("p99"))}` : row.ok ? t("mean") : t("no request yet"));
    this.latencyLine.draw(live ? history.last(Number.isFinite(p50) ? "p99" : "mean", SHOWN) : [], SHOWN);
    setText(this.errors, found.failed ? count(found.failed) : "0");
    this.errors.classList.toggle("quiet", !found.failed);
    this.errors.classList.toggle("has-errors", found.failing > 0 || found.failed > 0);
    if (row.servers) this.places(row);
    else this.inside(found, row, history, live);
  }

  /** What a router knows of a model: requests at its servers, and which servers have it. */
  places(row) {
    setText(this.queue, count(row.flight));
    this.queue.classList.toggle("quiet", !row.flight);
    setText(this.queueMore, row.wait_s > 0 ? `≈ ${duration(row.wait_s * 1000)}` : "");
    const taking = row.servers.filter((each) => each.takes).length;
    const ejected = row.servers.filter((each) => each.ejected).length;
    setText(this.batch, `${taking} / ${row.servers.length}`);
    setText(this.batchMore, ejected ? t("{n} ejected", { n: ejected }) : "");
  }

  /** What a server knows of a model: its queue, batches, instances and memory. */
  inside(found, row, history, live) {
    setText(this.queue, count(found.pending));
    this.queue.classList.toggle("quiet", !found.pending);
    const levels = Object.entries(row.queues || {});
    setText(this.queueMore, levels.length ? levels.map(([level, number]) => `${level}: ${number}`).join("  ") : row.wait_s > 0 ? `≈ ${duration(row.wait_s * 1000)}` : "");
    const batches = live ? history.last("batch", SHOWN).filter(Number.isFinite) : [];
    const mean = batches.length ? batches[batches.length - 1] : row.runs ? sizesOf(row) / row.runs : NaN;
    setText(this.batch, row.batch > 1 ? count(mean) : "–");
    setText(this.batchMore, row.batch > 1 ? t("of {n}", { n: row.batch }) : "");
    this.batch.classList.toggle("quiet", !(row.batch > 1));
    this.lanes.draw(history.lanes, row.lanes || {}, (name, now) => `${now}`, 3);
    setText(this.memory, found.memory ? bytes(found.memory) : "–");
    this.memory.classList.toggle("quiet", !found.memory);
  }
}
