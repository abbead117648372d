// Traces: the last, slow and failed requests, each as a waterfall through its steps and instances.

import { button, fill, h, icon, notice } from "./dom.js";
import { clock, duration } from "./figures.js";
import { read, send } from "./server.js";
import { store } from "./store.js";
import { t } from "./text.js";

/** Show all traces in `main`; return what ends it. */
export function traces(main) {
  const panel = h("div", {});
  fill(main, h("h1", { class: "page-title" }, t("Traces")), panel);
  return tracesOf(panel, "").close;
}

/** Show the traces of one model, or of all for "". */
export function tracesOf(panel, model) {
  const bar = h("div", { class: "card wide trace-bar" });
  const list = h("div", { class: "trace-list" });
  const detail = h("div", { class: "trace-detail", "aria-live": "polite" });
  fill(panel, bar, h("div", { class: "split" }, list, detail));
  const state = { shown: "last", chosen: 0, traces: [], settings: null, key: "" };
  const path = model ? `v2/models/${encodeURIComponent(model)}/trace/setting` : "v2/trace/setting";

  async function look() {
    try {
      const found = await read(`console/traces${model ? `?model=${encodeURIComponent(model)}` : ""}`);
      state.traces = found.traces;
      if (!state.settings) { state.settings = await read(path); controls(); }
      show();
    } catch (error) {
      if (error.status) fill(list, notice(t("Traces cannot be read"), error.message, "bad"));
    }
  }

  function controls() {
    const on = !state.settings.trace_level.includes("OFF");
    const rate = h("input", { class: "input small", type: "number", min: 1, id: "trace-rate", value: on ? state.settings.trace_rate : 1 });
    const trouble = h("p", { class: "error", role: "alert", hidden: true });
    const change = async (level) => {
      try {
        state.settings = await send(path, level === "OFF" ? { trace_level: ["OFF"] } : { trace_level: ["TIMESTAMPS"], trace_rate: String(rate.value || 1) });
        controls();
      } catch (error) {
        trouble.hidden = false;
        trouble.textContent = error.message;
      }
    };
    const may = store.session.may.change_trace && store.session.remote_settings && store.session.traces;
    fill(bar, h("span", { class: `badge ${on ? "ready" : "unloaded"}` }, on ? t("tracing is on") : t("tracing is off")),
      h("span", { class: "grow" }, !store.session.traces ? t("This server writes its traces elsewhere (--trace-config). Start it with --trace-config=mode=console to see them here.") : on ? t("One of {n} requests is traced.", { n: state.settings.trace_rate }) : t("Turn it on to see where the time of single requests goes.")),
      may && [h("label", { for: "trace-rate" }, t("one of")), rate, on ? button(t("Stop"), () => change("OFF"), {}, "stop") : button(t("Trace requests"), () => change("ON"), { class: "button primary" }, "play"), on && button(t("Apply"), () => change("ON"))], trouble);
  }

  function show() {
    const slow = state.traces.filter((each) => each.slow).sort((a, b) => b.us - a.us);
    const groups = { last: state.traces, slow, failed: state.traces.filter((each) => each.error) };
    const rows = groups[state.shown].slice(0, 100);
    const key = JSON.stringify([state.shown, state.chosen, rows.map((each) => each.id), slow.length, groups.failed.length]);
    if (key === state.key) return;
    state.key = key;
    const most = Math.max(1, ...rows.map((each) => each.us));
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : "";
    fill(list, h("div", { class: "chips", role: "group", "aria-label": t("Filter") }, [["last", "Last"], ["slow", "Slowest"], ["failed", "Failed"]].map(([kind, label]) => h("button", { type: "button", class: "chip", dataset: { key: kind }, "aria-pressed": String(state.shown === kind), onclick: () => { state.shown = kind; show(); } }, t(label), h("span", { class: "chip-count" }, String(groups[kind].length))))),
      rows.length ? h("ul", { class: "trace-rows" }, rows.map((each) => h("li", {}, h("button", { type: "button", dataset: { key: `trace-${each.id}` }, "aria-pressed": String(each.id === state.chosen), class: each.error ? "failed" : "", onclick: () => { state.chosen = each.id; show(); waterfall(); } },
        h("span", { class: "trace-name" }, each.error && icon("warning"), each.model, h("small", {}, each.request)), h("span", { class: "trace-time" }, clock(each.at_ms)), h("span", { class: "trace-track" }, h("span", { style: { width: `${(each.us / most) * 100}%` } })), h("b", {}, duration(each.us / 1000))))))
        : notice(state.shown === "failed" ? t("No failed request") : t("No trace yet"), state.shown === "failed" ? t("Failed requests that are traced appear here with their errors.") : t("Requests appear here as soon as they are traced.")));
    if (focused) list.querySelector(`[data-key="${focused}"]`)?.focus();
    if (!rows.some((each) => each.id === state.chosen) && rows.length) { state.chosen = rows[0].id; waterfall(); }
    if (!rows.length) fill(detail);
  }

  function waterfall() {
    const found = state.traces.find((each) => each.id === state.chosen);
    fill(detail, found ? drawn(found) : null);
  }

  look();
  const timer = setInterval(look, 2000);
  return { close: () => clearInterval(timer) };
}

// [kind, first stamp, last stamp, label]
const PARTS = [
  ["receive", "HTTP_RECV_START", "HTTP_RECV_END", "received"], ["receive", "GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "received"],
  ["queue", "QUEUE_START", "COMPUTE_START", "queue"], ["hit", "CACHE_HIT_LOOKUP_START", "CACHE_HIT_LOOKUP_END", "cache"],
  ["gather", "COMPUTE_START", "COMPUTE_INPUT_END", "input"], ["infer", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "compute"], ["divide", "COMPUTE_OUTPUT_START", "COMPUTE_END", "output"],
  ["send", "HTTP_SEND_START", "HTTP_SEND_END", "sent"], ["send", "GRPC_SEND_START", "GRPC_SEND_END", "sent"],
];

/** Return the waterfall of a trace: a line for each model, its phases as bars on one scale. */
export function drawn(trace) {
  const total = Math.max(1, trace.us);
  const depth = new Map();
  const ordered = [];
  const visit = (parent, level) => trace.spans.filter((each) => each.parent === parent && !depth.has(each.id)).sort((a, b) => first(a) - first(b)).forEach((each) => { depth.set(each.id, level); ordered.push(each); visit(each.id, level + 1); });
  visit(0, 0);
  for (const each of trace.spans) if (!depth.has(each.id)) { depth.set(each.id, 1); ordered.push(each); }
  const scale = [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", {}, duration((part * total) / 1000)));
  return h("section", { class: "card waterfall" }, h("h2", {}, trace.model, " ", h("small", {}, `${duration(trace.us / 1000)} · ${clock(trace.at_ms)}${trace.request ? ` · ${trace.request}` : ""}`)),
    trace.error && notice(t("The request failed"), trace.error, "bad"),
    h("div", { class: "water-scale", "aria-hidden": "true" }, scale),
    h("ol", { class: "water" }, ordered.map((span) => {
      const parts = partsOf(span, total);
      return h("li", {}, h("div", { class: "water-name", style: { "padding-left": `${depth.get(span.id) * 16}px` } }, h("a", { href: `#/model/${encodeURIComponent(span.model)}` }, span.model), h("small", {}, span.instance ? `${t("instance")} ${span.instance}` : "")),
        h("div", { class: "water-track", role: "img", "aria-label": `${span.model}: ${parts.map((each) => `${t(each.label)} ${duration((each.end - each.start) / 1000)}`).join(", ")}` },
          h("span", { class: "water-whole", style: { left: `${(first(span) / total) * 100}%`, width: `${((lastOf(span) - first(span)) / total) * 100}%` } }),
          parts.map((each) => h("span", { class: `water-part ${each.kind}`, title: `${t(each.label)} ${duration((each.end - each.start) / 1000)}`, style: { left: `${(each.start / total) * 100}%`, width: `${Math.max(0.25, ((each.end - each.start) / total) * 100)}%` } }))),
        h("span", { class: "water-time" }, duration((lastOf(span) - first(span)) / 1000)));
    })),
    h("ul", { class: "legend" }, [["receive", "received"], ["queue", "queue"], ["gather", "input"], ["infer", "compute"], ["divide", "output"], ["send", "sent"]].map(([kind, label]) => h("li", {}, h("i", { class: `key ${kind}` }), t(label)))),
    trace.left_out ? h("p", { class: "hint" }, t("{n} more calls are left out.", { n: trace.left_out })) : null);
}

function partsOf(span) {
  const at = new Map();
  for (const [name, us] of span.stamps) at.set(name, us);
  return PARTS.filter(([, start, end]) => at.has(start) && at.has(end) && at.get(end) >= at.get(start)).map(([kind, start, end, label]) => ({ kind, label, start: at.get(start), end: at.get(end) }));
}

const first = (span) => Math.min(...span.stamps.map(([, us]) => us));
const lastOf = (span) => Math.max(...span.stamps.map(([, us]) => us));
