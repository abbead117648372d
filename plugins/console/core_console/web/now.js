// The tab "Now" of a model: why it is slow, charts, instances, batches, versions, the graph of an ensemble.

import { findings, phases, possible } from "./advice.js";
import { bars, divided, Lanes, TimeChart } from "./charts.js";
import { fill, h, icon } from "./dom.js";
import { count, duration, percent } from "./figures.js";
import { graph } from "./graph.js";
import { sizesOf } from "./history.js";
import { read } from "./server.js";
import { span, spans } from "./spans.js";
import { store } from "./store.js";
import { t } from "./text.js";

const KINDS = { input: "gather", output: "divide" };

/** Show the tab; return { update, close }. */
export function now(panel, name, version) {
  const advice = h("ul", { class: "advice" });
  const split = h("div", {});
  const rate = new TimeChart(t("Requests per second"), count);
  const latency = new TimeChart(t("Latency"), duration, { hint: !store.session.quantiles ? t("means; --metrics-config=summary_latencies=true adds p50, p95 and p99") : version?.row.bounds_us && !version.row.quantiles_ms ? t("estimated from buckets up to {n}", { n: duration(version.row.bounds_us.at(-1) / 1000) }) : "" });
  const parts = new TimeChart(t("Latency by phase"), duration, { stacked: true });
  const queue = new TimeChart(t("Waiting and running requests"), count);
  const lanes = new Lanes();
  const lanesCard = h("section", { class: "card" }, h("h2", {}, t("Instances")), h("p", { class: "hint" }, t("One cell for each second of the last minute; the stronger the colour, the busier.")), lanes.element);
  const batches = h("section", { class: "card" });
  const versions = h("section", { class: "card" });
  const picture = h("section", { class: "card wide", hidden: true });
  fill(panel, picture, h("section", { class: "card wide why" }, h("h2", {}, t("Where the time goes")), split, advice),
    h("div", { class: "section-head" }, h("h2", {}, t("Charts")), spans(() => draw(shown))), version?.row.ensemble ? h("div", { class: "grid" }, rate.element, latency.element, queue.element, versions) : [h("div", { class: "grid" }, rate.element, latency.element, parts.element, queue.element), h("div", { class: "grid" }, h("div", { class: "stack" }, lanesCard, versions), batches)]);
  let shown = version;
  let drawing = null;
  if (version?.row.ensemble && store.session.may.read_configuration) {
    read(`console/models/${encodeURIComponent(name)}/versions/${version.row.version}`).then((found) => {
      drawing = graph(found.steps, found.loops, name);
      fill(picture, h("h2", {}, t("The steps")), h("p", { class: "hint" }, t("Times are means of the last half minute, else since the load. The thick line is the slowest one.")), drawing.element);
      picture.hidden = false;
      drawing.update();
    }).catch(() => {});
  }

  function draw(found) {
    shown = found;
    if (!found || found.row.state !== "READY") return;
    const { row, history } = found;
    lanesCard.hidden = row.ensemble;
    why(found);
    charts(found);
    if (!row.ensemble) lanes.draw(history.lanes, row.lanes, (each, batches_now, busy) => `${batches_now ? t("executes") : t("idle")} · ${percent(busy)}`);
    fillBatches(found);
    fillVersions();
    drawing?.update();
  }

  function why(found) {
    const phase = phases(found);
    const names = [["queue", t("Queue")], ["input", t("Input")], ["infer", t("Compute")], ["output", t("Output")], ["other", t("Delivery")]];
    const known = Number.isFinite(phase.mean);
    const shownParts = found.row.ensemble ? [] : names.map(([key, label]) => ({ label, value: phase[key], text: duration(phase[key] || 0), kind: KINDS[key] || key }));
    const key = `${shownParts.map((each) => each.text).join()} ${phase.mean}`;
    if (split.dataset.key !== key) {
      split.dataset.key = key;
      fill(split, known ? [h("p", { class: "big" }, h("b", {}, duration(phase.mean)), " ", phase.live ? t("mean of the last half minute") : t("mean since the load")), shownParts.length ? divided(shownParts, t("Latency by phase")) : null] : null);
    }
    const list = findings(found);
    const words = list.map((each) => each.title + each.text).join();
    if (advice.dataset.key !== words) {
      advice.dataset.key = words;
      fill(advice, list.map((each) => h("li", { class: each.kind }, h("strong", {}, each.title), h("span", {}, each.text))));
    }
  }

  function charts({ row, history }) {
    const most = span;
    const times = history.size ? history.last("time", most) : [];
    const of = (field) => (history.size ? history.last(field, most) : []);
    const time = store.at;
    const width = span * 1000;
    rate.draw(times, [{ key: "rate", label: t("answered"), kind: "rate", values: of("rate") }, { key: "failed", label: t("failed"), kind: "bad", values: of("failed") }], time, width);
    const quantiles = of("p50").some(Number.isFinite);
    latency.draw(times, quantiles ? [["p50", "p50"], ["p95", "p95"], ["p99", "p99"]].map(([field, kind]) => ({ key: field, label: field, kind, values: of(field) })) : [{ key: "mean", label: t("mean"), kind: "p50", values: of("mean") }], time, width);
    parts.element.hidden = row.ensemble;
    parts.draw(times, [["queue", t("Queue")], ["input", t("Input")], ["infer", t("Compute")], ["output", t("Output")]].map(([field, label]) => ({ key: field, label, kind: KINDS[field] || field, values: of(field) })), time, width);
    queue.draw(times, [{ key: "pending", label: t("waiting"), kind: "queue", values: of("pending") }, { key: "flight", label: t("in flight"), kind: "infer", values: of("flight") }], time, width);
  }

  function fillBatches(found) {
    const { row } = found;
    batches.hidden = !(row.batch > 1) || row.ensemble;
    if (batches.hidden) return;
    const sizes = Object.entries(row.batches).filter(([, number]) => number);
    const key = sizes.join(";");
    if (batches.dataset.key === key) return;
    batches.dataset.key = key;
    const rows = grouped(sizes, row);
    const chance = possible(found);
    fill(batches, h("h2", {}, t("Batches")), rows.length ? [h("p", { class: "hint" }, t("Executions by number of rows, and the rows per second of one instance.")), bars(rows, { label: t("Batches") })] : h("p", { class: "hint" }, t("No batch yet.")),
      rows.length ? h("p", { class: "conclusion" }, t("On average {n} of {most} rows.", { n: count(sizesOf(row) / Math.max(1, row.runs)), most: row.batch }), " ", !chance ? "" : chance.arrive < 1 ? t("Less than one row arrives while a batch runs ({time}): only a queue delay would make batches larger.", { time: duration(chance.run) }) : t("About {n} rows arrive while one batch runs ({time}): that many the batcher could group without a delay.", { n: count(chance.arrive), time: duration(chance.run) })) : null);
  }

  function fillVersions() {
    const all = [...(store.models.get(name)?.versions.values() || [])].sort((a, b) => b.row.version - a.row.version);
    const key = all.map(({ row }) => `${row.version} ${row.state} ${row.ok} ${row.failed}`).join();
    if (versions.dataset.key === key) return;
    versions.dataset.key = key;
    fill(versions, h("h2", {}, t("Versions")), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("Versions") }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["Version", "State", "Requests", "Errors", "Mean latency", "Executions", "From cache"].map((each) => h("th", { scope: "col" }, t(each))))),
      h("tbody", {}, all.map(({ row }) => h("tr", {}, h("th", { scope: "row" }, String(row.version)), h("td", {}, row.state === "READY" ? t("ready") : row.reason || row.state.toLowerCase()),
        row.state === "READY" ? [count(row.ok), count(row.failed), row.ok ? duration(row.total_ns / row.ok / 1e6) : "–", count(row.runs), count(row.hits)].map((each) => h("td", { class: "number" }, each)) : h("td", { colspan: 5 }, "")))))),
      failures(all));
  }

  function failures(all) {
    const found = {};
    for (const { row } of all) for (const [reason, number] of Object.entries(row.failures || {})) found[reason] = (found[reason] || 0) + number;
    const rows = Object.entries(found);
    if (!rows.length) return null;
    return h("div", {}, h("h3", {}, icon("warning"), t("Errors by reason")), bars(rows.map(([reason, number]) => ({ label: t(REASONS[reason] || reason), value: number, text: count(number), kind: "bad" }))), store.session.may.read_log ? h("p", { class: "hint" }, t("The texts are in the log and, while requests are traced, in the traces.")) : null);
  }
  return { update: draw, close: () => {} };
}

const REASONS = { REJECTED: "waited too long", CANCELED: "cancelled by the client", BACKEND: "the model failed", DEADLINE: "deadline could not be met", OTHER: "other" };

function grouped(sizes, row) {
  // More than twelve sizes are put together in powers of two.
  const groups = new Map();
  for (const [size, number] of sizes) {
    const low = sizes.length > 12 ? 2 ** Math.floor(Math.log2(Number(size))) : Number(size);
    const group = groups.get(low) || { number: 0, ns: 0, rows: 0 };
    group.number += number;
    group.ns += row.batch_ns[size] || 0;
    group.rows += number * size;
    groups.set(low, group);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([low, group]) => {
    const high = sizes.length > 12 ? Math.min(row.batch, low * 2 - 1) : low;
    return { label: high > low ? `${low}–${high}` : String(low), value: group.number, kind: "infer", text: `${count(group.number)} · ${group.ns ? `${count(group.rows / (group.ns / 1e9))} /s` : ""}` };
  });
}
