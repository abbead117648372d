// A replay of a capture to this server: the settings, its progress, and what has changed in the answers.

import { bars } from "./charts.js";
import { announce, button, fill, h, icon, notice } from "./dom.js";
import { count, duration } from "./figures.js";
import { events, request } from "./server.js";
import { t } from "./text.js";

// [count of the report, label, kind of its bar]
const COUNTS = [["equal", "answers are equal", "best"], ["differing", "answers differ", "bad"], ["unanswered", "no answer", "bad"], ["unsent", "not sent", "rest"], ["uncompared", "not compared", "rest"]];

/** Show the form of a replay in `place`. Returns {close}. chosen(id): the person opens a record. */
export function replay(place, name, chosen) {
  const select = (id, label, options) => {
    const input = h("select", { class: "input", id }, options.map(([value, text]) => h("option", { value }, text)));
    return [input, h("div", { class: "field" }, h("label", { for: id }, label), input)];
  };
  const [speed, speed_row] = select("replay-speed", t("Pace"), [["max", t("as fast as possible")], ["1", t("as recorded")], ["2", t("twice as fast")], ["10", t("ten times as fast")]]);
  const [compare, compare_row] = select("replay-compare", t("Compare"), [["values", t("values of tensors")], ["bytes", t("all bytes")], ["none", t("nothing")]]);
  const tolerance = h("input", { class: "input", id: "replay-tolerance", type: "number", min: 0, step: "any", value: "0" });
  const result = h("div", { "aria-live": "polite" });
  const run = h("button", { type: "submit", class: "button primary" }, icon("play"), t("Run the replay"));
  const stop = button(t("Stop"), () => control?.abort(), { hidden: true }, "stop");
  let control = null;

  async function begin(event) {
    event.preventDefault();
    control = new AbortController();
    run.disabled = true;
    stop.hidden = false;
    const body = { speed: speed.value === "max" ? "max" : Number(speed.value), compare: compare.value, tolerance: Number(tolerance.value) };
    try {
      const answer = await request(`v2/captures/${encodeURIComponent(name)}/replay`, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal: control.signal });
      let ended = false;
      for await (const [kind, text] of events(answer)) {
        const found = JSON.parse(text);
        ended = kind !== "progress";
        fill(result, kind === "progress" ? progress(found) : kind === "report" ? report(found, chosen) : notice(t("The replay failed"), found.error, "bad"));
      }
      if (!ended) fill(result, notice(t("The replay failed"), t("The server does not answer"), "bad"));
      announce(t("The replay has ended"));
    } catch (error) {
      fill(result, error.name === "AbortError" ? notice(t("The replay was stopped"), "") : notice(t("The replay failed"), error.message, "bad"));
    } finally {
      run.disabled = false;
      stop.hidden = true;
    }
  }

  fill(place, h("section", { class: "card replay" }, h("h2", {}, t("Replay to this server")), h("p", { class: "hint" }, t("The requests are sent again with your token, and count like those of clients.")),
    h("form", { class: "capture-form", onsubmit: begin }, speed_row, compare_row, h("div", { class: "field" }, h("label", { for: "replay-tolerance" }, t("Tolerance")), tolerance), h("div", { class: "row-gap" }, run, stop)), result));
  return { close: () => control?.abort() };
}

function progress(found) {
  const part = found.total ? found.done / found.total : 0;
  return h("div", { class: "replay-progress" }, h("progress", { max: 1, value: part, "aria-label": t("Replay") }), h("span", {}, t("{n} of {all} requests", { n: count(found.done), all: count(found.total) })));
}

function report(found, chosen) {
  const total = COUNTS.reduce((sum, [name]) => sum + found[name], 0);
  const shown = COUNTS.filter(([name]) => found[name] || name === "equal" || name === "differing");
  const bad = found.differing + found.unanswered;
  const { recorded, now } = found.latency_ns;
  return h("div", { class: "replay-report" },
    bad ? notice(t("{n} of {all} answers are not as before", { n: count(bad), all: count(total) }), "", "bad") : h("div", { class: "notice good" }, icon("check"), found.equal ? t("All compared answers are as before") : t("All requests are answered")),
    h("div", { class: "grid" },
      h("div", {}, h("h3", {}, t("Answers")), bars(shown.map(([name, label, kind]) => ({ label: t(label), value: found[name], text: count(found[name]), kind })), { top: total, label: t("Answers") })),
      h("div", {}, h("h3", {}, t("Latency")), latencies(recorded, now), found.late_ns > 1e7 ? h("p", { class: "hint" }, t("The replay was late by up to {time}: this machine cannot keep the pace.", { time: duration(found.late_ns / 1e6) })) : null)),
    found.differences.length ? h("div", {}, h("h3", {}, t("What differs")), h("ol", { class: "differences" }, found.differences.slice(0, 100).map((each) => h("li", {}, button(`#${each.number}`, () => chosen(each.id), { class: "button", "aria-label": t("Open request {n}", { n: each.number }) }), h("code", {}, each.model || each.path), h("span", {}, each.text))))) : null);
}

function latencies(before, now) {
  const names = Object.keys(now);
  if (!names.length) return h("p", { class: "hint" }, t("No answer yet"));
  const row = (label, values) => h("tr", {}, h("th", { scope: "row" }, label), names.map((each) => h("td", {}, duration(values[each] / 1e6))));
  return h("table", { class: "table" }, h("thead", {}, h("tr", {}, h("td", {}), names.map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, row(t("recorded"), before), row(t("now"), now)));
}
