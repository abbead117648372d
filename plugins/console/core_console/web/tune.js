// The tab "Tune": searches the settings with which the model serves most requests within an objective.

import { bars } from "./charts.js";
import { curve } from "./curve.js";
import { announce, button, copy, fill, h, icon, notice, setText } from "./dom.js";
import { count, duration } from "./figures.js";
import { events, modelPath, request } from "./server.js";
import { store } from "./store.js";
import { shapes } from "./tensors.js";
import { t } from "./text.js";

const MOST_SETTINGS = 12;
const KINDS = ["rate", "p50", "p95", "p99", "other"]; // colours of settings, the last measured one first

/** Show the tab. */
export function tune(panel, name, version) {
  const field = (label, element) => h("div", { class: "field" }, h("label", { for: element.id }, label), element);
  const number = (id, value, least, most, step) => h("input", { id, class: "input", type: "number", min: least, max: most, step, value: String(value), required: true });
  const slo = h("input", { id: "tune-slo", class: "input", value: "p99=20ms", required: true, autocomplete: "off", spellcheck: "false" });
  const minutes = number("tune-minutes", 3, 0.1, 60, "any");
  const measurements = number("tune-measurements", 24, 1, 200, 1);
  const batch = number("tune-batch", 1, 1, Math.max(1, version?.row.batch || 1), 1);
  const protocol = h("select", { id: "tune-protocol", class: "input" }, [["http", "HTTP"], ...(store.session.grpc_port ? [["grpc", "gRPC"]] : [])].map(([value, text]) => h("option", { value }, text)));
  const keep = h("input", { id: "tune-apply", type: "checkbox" });
  const open = h("input", { id: "tune-shapes", class: "input", placeholder: "x:3,224,224; y:16", autocomplete: "off", spellcheck: "false" });
  const run = h("button", { type: "submit", class: "button primary" }, icon("play"), t("Start"));
  const stop = button(t("Stop"), () => control?.abort(), { hidden: true }, "stop");
  const step = h("span", { class: "grow" });
  const live = h("div", { class: "bench-live", hidden: true, role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), step);
  const trouble = h("div", {});
  const result = h("div", { class: "stack" });
  let control = null;

  async function begin(event) {
    event.preventDefault();
    control = new AbortController();
    run.disabled = true;
    stop.hidden = live.hidden = false;
    fill(trouble);
    fill(result);
    setText(step, t("The load generator starts"));
    const seen = [];
    const body = { slo: slo.value.trim(), minutes: Number(minutes.value), measurements: Number(measurements.value), batch: Number(batch.value), shapes: shapes(open.value), protocol: protocol.value, apply: keep.checked };
    try {
      const answer = await request(`${modelPath(name)}/tune`, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal: control.signal });
      let last = "";
      for await (const [what, text] of events(answer)) {
        const found = JSON.parse(text);
        last = what;
        if (what === "step") setText(step, found.text);
        else if (what === "measurement") { seen.push(found); fill(result, tried(seen)); }
        else if (what === "failed") fill(trouble, notice(t("The search failed"), found.error, "bad"));
        else fill(result, report(found), tried(seen));
      }
      if (last === "report") announce(t("The search has ended"));
      else if (last !== "failed") fill(trouble, notice(t("The search failed"), t("The server does not answer"), "bad"));
    } catch (error) {
      fill(trouble, error.name === "AbortError" ? notice(t("The search was stopped"), t("The model gets its own settings back.")) : notice(t("The search failed"), error.message, "bad"));
    } finally {
      run.disabled = false;
      stop.hidden = live.hidden = true;
    }
  }

  fill(panel, h("section", { class: "card wide" }, h("h2", {}, t("Find the best settings")), h("p", { class: "hint" }, t("The search loads the model with other settings and sends random data with your token. Requests of others are answered meanwhile, but slower.")),
    h("form", { class: "capture-form", onsubmit: begin }, field(t("Objective"), slo), field(t("Minutes at most"), minutes), field(t("Measurements at most"), measurements), field(t("Rows of a request"), batch), field(t("Shapes of open inputs"), open), field(t("Protocol"), protocol), h("label", { class: "choice" }, keep, t("keep the best settings")), h("div", { class: "row-gap" }, run, stop)), live, trouble), result);
  return { close: () => control?.abort() };
}

/** Return the chart and the table of what was measured so far. */
function tried(seen) {
  const at_rate = seen.filter((each) => each.rate);
  const settings = [...new Set(at_rate.map((each) => each.shown).reverse())];
  const lines = settings.slice(0, KINDS.length).map((shown, i) => ({ name: KINDS[i], title: shown, points: at_rate.filter((each) => each.shown === shown).sort((a, b) => a.answers_per_s - b.answers_per_s).map((each) => ({ x: each.answers_per_s, y: each.latency_s * 1000, label: shown })) }));
  return [
    lines.length ? h("section", { class: "card wide" }, h("h2", {}, t("Latency against rate")), h("p", { class: "hint" }, t("A point is a measurement at a rate; a line is one combination of settings, of the last five.")), curve(lines, { label: t("Latency against rate"), across: (value) => `${count(value)}/s`, up: duration })) : null,
    h("section", { class: "card wide" }, h("h2", {}, t("What was tried")), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("What was tried") }, h("table", { class: "table" },
      h("thead", {}, h("tr", {}, ["#", t("Settings"), t("Sent"), t("Answers/s"), t("Latency")].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, seen.map((each, i) => [each, i]).reverse().map(([each, i]) => h("tr", {}, h("td", {}, String(i + 1)), h("th", { scope: "row" }, each.shown), h("td", {}, each.rate ? `${count(each.rate)}/s` : t("{n} at once", { n: count(each.at_once) })), h("td", {}, count(each.answers_per_s)), h("td", {}, duration(each.latency_s * 1000)))))))),
  ];
}

/** Return the cards of the report: the best settings, and the difference of the configuration. */
function report(found) {
  const rows = found.settings.slice(0, MOST_SETTINGS);
  const now = found.settings.find((each) => each.shown === found.now_shown);
  const best = found.settings.find((each) => each.shown === found.best_shown);
  const lines = (found.difference || "").split("\n").filter((line) => line && !/^(---|\+\+\+|@@)/.test(line));
  return [
    found.best_shown ? h("div", { class: "notice good" }, icon("check"), found.best_shown === found.now_shown ? t("The settings of now are the best: {name}", { name: found.best_shown }) : t("Best: {name}", { name: found.best_shown }), now && best && best !== now ? ` · ${t("{n} times the rate of now", { n: count(best.requests_per_s / now.requests_per_s) })}` : "") : notice(t("No settings keep the objective"), "", "bad"),
    h("section", { class: "card wide" }, h("h2", {}, t("Requests per second within the objective")), h("p", { class: "hint" }, t("The highest rate at which {name} is kept, from all measurements together.", { name: `${found.objective.name} ≤ ${duration(found.objective.s * 1000)}` })),
      bars(rows.map((each) => ({ label: each.shown === found.now_shown ? `${each.shown} (${t("now")})` : each.shown, value: each.requests_per_s, text: count(each.requests_per_s), kind: each.shown === found.best_shown ? "best" : "rest" })), { label: t("Requests per second within the objective") })),
    lines.length ? h("section", { class: "card wide" }, h("div", { class: "section-head" }, h("h2", {}, t("Difference of the configuration")), button(t("Copy"), () => copy(found.difference, t("Copied")), {}, "copy")),
      h("pre", { class: "code marked", tabindex: "0" }, lines.map((line) => h("span", { class: { "+": "added", "-": "removed" }[line[0]] || "" }, h("i", { "aria-hidden": "true" }, line[0]), h("span", { class: "unseen" }, line[0] === "+" ? t("added: ") : line[0] === "-" ? t("removed: ") : ""), `${line.slice(1)}\n`)))) : null,
  ];
}
