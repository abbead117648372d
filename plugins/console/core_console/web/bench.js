// The tab "Bench": sends load to the model from this server, and shows rate and latency at each load, live.

import { bars, Sparkline } from "./charts.js";
import { curve } from "./curve.js";
import { announce, button, fill, h, icon, notice, setText } from "./dom.js";
import { count, duration } from "./figures.js";
import { events, modelPath, request } from "./server.js";
import { store } from "./store.js";
import { shapes } from "./tensors.js";
import { t } from "./text.js";

const QUANTILES = ["p50", "p95", "p99"];
const kept = new Map(); // model → its last report, as long as the page is open

/** Show the tab. */
export function bench(panel, name, version) {
  const field = (label, element) => h("div", { class: "field" }, h("label", { for: element.id }, label), element);
  const select = (id, options) => h("select", { id, class: "input" }, options.map(([value, text]) => h("option", { value }, text)));
  const number = (id, value, most, step = 1) => h("input", { id, class: "input", type: "number", min: step, max: most, step, value: String(value), required: true });
  const kind = select("bench-kind", [["concurrency", t("requests at once")], ["rate", t("requests per second")]]);
  const loads = h("input", { id: "bench-loads", class: "input", value: "1, 2, 4, 8", required: true, autocomplete: "off" });
  const batch = number("bench-batch", 1, Math.max(1, version?.row.batch || 1));
  const seconds = number("bench-seconds", 1, 60, 0.1);
  const rounds = number("bench-rounds", 3, 20);
  const protocol = select("bench-protocol", [["http", "HTTP"], ...(store.session.grpc_port ? [["grpc", "gRPC"]] : [])]);
  const open = h("input", { id: "bench-shapes", class: "input", placeholder: "x:3,224,224; y:16", autocomplete: "off", spellcheck: "false" });
  const run = h("button", { type: "submit", class: "button primary" }, icon("play"), t("Start"));
  const stop = button(t("Stop"), () => control?.abort(), { hidden: true }, "stop");
  const trouble = h("div", {});
  const live = new Live();
  const result = h("div", { class: "stack" });
  let control = null;
  kind.addEventListener("change", () => { loads.value = kind.value === "rate" ? "50, 100, 200" : "1, 2, 4, 8"; });

  async function begin(event) {
    event.preventDefault();
    control = new AbortController();
    run.disabled = true;
    stop.hidden = false;
    fill(trouble);
    live.begin();
    const body = { kind: kind.value, loads: loads.value.split(/[\s,;]+/).filter(Boolean).map(Number), batch: Number(batch.value), shapes: shapes(open.value), protocol: protocol.value, round_s: Number(seconds.value), rounds: Number(rounds.value) };
    try {
      const answer = await request(`${modelPath(name, version?.row.version)}/bench`, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal: control.signal });
      let last = "";
      for await (const [what, text] of events(answer)) {
        const found = JSON.parse(text);
        last = what;
        if (what === "progress") live.show(found);
        else if (what === "failed") fill(trouble, notice(t("The measurement failed"), found.error, "bad"));
        else {
          kept.set(name, { ...found, kind: body.kind });
          fill(result, report(kept.get(name)));
        }
      }
      if (last === "report") announce(t("The measurement has ended"));
      else if (last !== "failed") fill(trouble, notice(t("The measurement failed"), t("The server does not answer"), "bad"));
    } catch (error) {
      fill(trouble, error.name === "AbortError" ? notice(t("The measurement was stopped"), "") : notice(t("The measurement failed"), error.message, "bad"));
    } finally {
      run.disabled = false;
      stop.hidden = true;
      live.end();
    }
  }

  fill(panel, h("section", { class: "card wide" }, h("h2", {}, t("Measure this model")), h("p", { class: "hint" }, t("A process on this server sends random data with your token. It shares the processors with the model, and other callers feel it.")),
    h("form", { class: "capture-form", onsubmit: begin }, field(t("Kind of load"), kind), field(t("Loads, in turn"), loads), field(t("Rows of a request"), batch), field(t("Shapes of open inputs"), open), field(t("Protocol"), protocol), field(t("Seconds of a round"), seconds), field(t("Rounds"), rounds), h("div", { class: "row-gap" }, run, stop)), live.element, trouble), result);
  if (kept.has(name)) fill(result, report(kept.get(name)));
  return { close: () => control?.abort() };
}

/** What is measured now, with a line of the answers per second. */
class Live {
  constructor() {
    this.line = new Sparkline(260, 36, t("Answers per second, live"));
    this.text = h("span", { class: "grow" });
    this.rate = h("b", {});
    this.element = h("div", { class: "bench-live", hidden: true }, h("span", { class: "spinner", "aria-hidden": "true" }), this.text, this.rate, this.line.element);
  }

  begin() {
    this.rates = [];
    this.before = null;
    setText(this.text, t("The load generator starts"));
    setText(this.rate, "");
    this.line.draw([], 60);
    this.element.hidden = false;
  }

  show(found) {
    const { before } = this;
    setText(this.text, found.wrong ? `${found.text} · ${t("{n} errors", { n: count(found.wrong) })}` : found.text);
    if (before && before.text === found.text && found.right >= before.right && found.at_s > before.at_s) {
      const rate = (found.right - before.right) / (found.at_s - before.at_s);
      this.rates = [...this.rates, rate].slice(-60);
      setText(this.rate, `${count(rate)}/s`);
      this.line.draw(this.rates, 60);
    }
    this.before = found;
  }

  end() {
    this.element.hidden = true;
  }
}

const ms = (interval) => (interval ? interval.median * 1000 : NaN);

/** Return the charts and the table of a report, also of one that is not complete. */
function report(found) {
  const cases = found.cases.map((each) => ({ ...each, label: found.kind === "rate" ? `${count(each.load)}/s` : t("{n} at once", { n: count(each.load) }), rate: each.answers_per_s?.median || 0, failed: Object.values(each.errors).reduce((sum, number) => sum + number, 0) }));
  const errors = cases.flatMap((each) => Object.entries(each.errors).map(([text, number]) => `${each.label}: ${count(number)} × ${text}`));
  const best = Math.max(...cases.map((each) => each.rate));
  const spread = (interval) => (interval && interval.high > interval.low ? `${count(interval.low)} – ${count(interval.high)}` : "");
  return [
    errors.length ? notice(t("Requests failed"), errors.join("\n"), "bad") : null,
    h("div", { class: "grid" },
      h("section", { class: "card" }, h("h2", {}, t("Answers per second")), h("p", { class: "hint" }, t("The median of the rounds, for each load.")), bars(cases.map((each) => ({ label: each.label, value: each.rate, text: count(each.rate), title: spread(each.answers_per_s), kind: each.rate === best ? "best" : "rest" })), { label: t("Answers per second") })),
      h("section", { class: "card" }, h("h2", {}, t("Latency against rate")), h("p", { class: "hint" }, t("A point is a load. Where the line turns up, more load only waits.")), curve(QUANTILES.map((each) => ({ name: each, points: cases.filter((one) => one.latency_s).map((one) => ({ x: one.rate, y: ms(one.latency_s[each]), label: one.label })) })), { label: t("Latency against rate"), across: (value) => `${count(value)}/s`, up: duration }))),
    h("section", { class: "card wide" }, h("h2", {}, t("Numbers")), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("Numbers") }, h("table", { class: "table" },
      h("thead", {}, h("tr", {}, [t("At the load"), t("Answers/s"), t("in the rounds"), ...QUANTILES, t("rows of a batch"), t("server CPU of an answer"), t("Errors")].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, cases.map((each) => h("tr", {}, h("th", { scope: "row" }, each.label), h("td", {}, count(each.rate)), h("td", {}, spread(each.answers_per_s)), QUANTILES.map((one) => h("td", {}, each.latency_s ? duration(ms(each.latency_s[one])) : "–")), h("td", {}, count(each.rows_per_batch?.median ?? NaN)), h("td", {}, each.server_cpu_us ? duration(each.server_cpu_us.median / 1000) : "–"), h("td", { class: each.failed ? "has-errors" : "" }, count(each.failed))))))),
    found.notes?.length ? h("ul", { class: "hint notes" }, found.notes.map((each) => h("li", {}, each))) : null),
  ];
}
