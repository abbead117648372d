// Captures: requests that the server records; start and stop, look at them, and replay them to this server.

import { announce, button, fill, h, icon, notice, setText } from "./dom.js";
import { bytes, clock, count, duration, moment, percent } from "./figures.js";
import { recorded } from "./record.js";
import { replay } from "./replay.js";
import { read, send } from "./server.js";
import { offers, store } from "./store.js";
import { t } from "./text.js";

const LOOK_MS = 2000;
const COUNTS = { written: "{n} written", full: "{n} dropped", unwritten: "{n} not written" };

/** Show the captures in `main`; return what ends it. */
export function captures(main) {
  const bar = h("section", { class: "card", "aria-label": t("Capture") });
  const chooser = h("div", { class: "toolbar" });
  const replays = h("div", {});
  const list = h("div", { class: "trace-list" });
  const detail = h("div", { class: "trace-detail", "aria-live": "polite" });
  const split = h("div", { class: "split" }, list, detail);
  fill(main, h("h1", { class: "page-title" }, t("Captures")), bar, chooser, replays, split);
  const state = { found: null, name: "", model: "", failed: false, records: null, chosen: "", key: "", replay: null, begun: "" };

  async function look() {
    try {
      const found = await read("v2/captures");
      const before = state.found && key(state.found);
      state.found = found;
      if (before !== key(found)) control(bar, found, look);
      else counters(bar, found);
      const running = nameOf(found);
      const shown = state.name;
      if (before !== key(found) && running) state.begun = running;
      if (state.replay && state.begun !== running) state.begun = ""; // it has ended beside the replay: the page stays
      if (state.begun && !state.replay && found.captures.some((each) => each.name === state.begun)) Object.assign(state, { name: state.begun, begun: "", model: "", chosen: "", records: null });
      if (!found.captures.some((each) => each.name === state.name)) Object.assign(state, { name: found.captures[0]?.name || "", model: "", chosen: "", records: null });
      if (state.replay && state.name !== shown) stop_replay();
      choose();
      if (state.name && (!state.records || state.name === running)) await open();
      else if (!state.name) nothing();
    } catch (error) {
      fill(list, notice(t("Captures cannot be read"), error.message, "bad"));
    }
  }

  function choose() {
    const now = JSON.stringify([state.found.captures, state.name, state.records?.models, state.model, state.failed]);
    if (now === state.key) return;
    state.key = now;
    chooser.hidden = !state.found.captures.length;
    const names = h("select", { class: "input small", id: "capture-of", onchange: () => { Object.assign(state, { name: names.value, begun: "", model: "", chosen: "", records: null }); stop_replay(); open(); } },
      state.found.captures.map((each) => h("option", { value: each.name, selected: each.name === state.name }, `${titleOf(each.name)} · ${bytes(each.bytes)} · ${moment(each.changed_ms)}`)));
    const models = h("select", { class: "input small", id: "capture-model", onchange: () => { Object.assign(state, { model: models.value, chosen: "" }); open(); } }, h("option", { value: "" }, t("all models")),
      Object.entries(state.records?.models || {}).map(([name, number]) => h("option", { value: name, selected: name === state.model }, `${name || "–"} (${number})`)));
    const failed = h("button", { type: "button", class: "chip", "aria-pressed": String(state.failed), onclick: () => { Object.assign(state, { failed: !state.failed, chosen: "" }); open(); } }, t("Failed"), h("span", { class: "chip-count" }, String(state.records?.failed || 0)));
    const focused = document.activeElement?.id;
    fill(chooser, h("label", { for: "capture-of" }, t("Recorded in")), names, h("label", { for: "capture-model" }, t("Model")), models, failed,
      store.session.may.change_infer && offers("POST /v2/captures/{capture}/replay") ? button(t("Replay…"), show_replay, { class: "button", "aria-expanded": String(Boolean(state.replay)) }, "play") : null);
    if (focused && chooser.querySelector(`#${focused}`)) chooser.querySelector(`#${focused}`).focus();
  }

  function show_replay() {
    if (state.replay) return stop_replay();
    state.replay = replay(replays, state.name, (id) => { state.chosen = id; rows(); show(); });
    state.key = "";
    choose();
  }

  function stop_replay() {
    state.replay?.close();
    state.replay = null;
    fill(replays);
    state.key = "";
    choose();
  }

  async function open() {
    const { name, model, failed } = state;
    try {
      const query = new URLSearchParams({ limit: 200, ...(model && { model }), ...(failed && { failed: true }) });
      const records = await read(`v2/captures/${encodeURIComponent(name)}/records?${query}`);
      if (name !== state.name || model !== state.model || failed !== state.failed) return;
      const same = JSON.stringify(records) === JSON.stringify(state.records);
      state.records = records;
      choose();
      if (!same) rows();
      if (!records.records.length) fill(detail);
      if (!state.chosen && records.records.length) { state.chosen = records.records[0].id; rows(); show(); }
    } catch (error) {
      fill(list, notice(t("Captures cannot be read"), error.message, "bad"));
    }
  }

  function nothing() {
    fill(list, state.found.folder === null ? null : notice(t("No capture yet"), t("Start one, and send requests: they appear here.")));
    fill(detail);
    state.records = null;
  }

  function rows() {
    const { records, count: number, bytes_left_out: left } = state.records;
    const most = Math.max(1, ...records.map((each) => each.duration_ns));
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : "";
    fill(list, records.length ? h("ul", { class: "trace-rows" }, records.map((each) => h("li", {}, h("button", { type: "button", dataset: { key: each.id }, "aria-pressed": String(each.id === state.chosen), class: each.failed ? "failed" : "", onclick: () => { state.chosen = each.id; rows(); show(); } },
      h("span", { class: "trace-name" }, each.failed && icon("warning"), each.model || each.path, h("small", {}, `${each.protocol} ${each.status}`)), h("span", { class: "trace-time" }, clock(each.at_ms)), h("span", { class: "trace-track" }, h("span", { style: { width: `${(each.duration_ns / most) * 100}%` } })), h("b", {}, duration(each.duration_ns / 1e6))))))
      : notice(t("No request"), t("No recorded request fits.")),
    h("p", { class: "hint" }, t("{n} of {all} requests, the latest first.", { n: records.length, all: count(number) }), left ? ` ${t("{n} of earlier requests are not read.", { n: bytes(left) })}` : ""));
    if (focused) list.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  async function show() {
    const { name, chosen } = state;
    try {
      const found = await read(`v2/captures/${encodeURIComponent(name)}/records/${encodeURIComponent(chosen)}`);
      if (name === state.name && chosen === state.chosen) fill(detail, recorded(found));
    } catch (error) {
      fill(detail, notice(t("The request cannot be read"), error.message, "bad"));
    }
  }

  let timer = 0;
  let ended = false;
  async function repeat() {
    await look();
    if (!ended) timer = setTimeout(repeat, LOOK_MS); // after the answer: a slow server gets no second request
  }
  repeat();
  return () => { ended = true; clearTimeout(timer); state.replay?.close(); };
}

const titleOf = (name) => (name === "." ? t("(no name)") : name);
const running = (found) => found.processes.find((each) => each.running);
const key = (found) => JSON.stringify([found.folder, Boolean(running(found)), running(found)?.since_ns]);

/** Return the name of the capture that runs below the folder; "" for none. */
function nameOf(found) {
  const folder = running(found)?.folder;
  if (!folder) return "";
  return folder === found.folder ? "." : folder.split("/").pop();
}

/** Fill the card with what runs, and with the form that starts a capture. */
function control(card, found, changed) {
  const may = { start: offers("POST /control/capture.start"), stop: offers("POST /control/capture.stop") };
  const now = running(found);
  const outcome = h("p", { class: "error", role: "alert", hidden: true });
  const act = async (operation, body) => {
    try {
      await send(`control/capture.${operation}`, body);
      announce(operation === "start" ? t("The capture runs") : t("The capture has ended"));
      await changed();
    } catch (error) {
      outcome.hidden = false;
      fill(outcome, icon("warning"), error.message);
    }
  };
  if (found.folder === null) {
    fill(card, notice(t("This server has no folder for captures"), t("Start it with --capture-live=FOLDER.")));
    return;
  }
  if (now) {
    const what = [now.models.length ? now.models.join(", ") : t("all models"), now.rate < 1 && t("{part} of the requests", { part: percent(now.rate) }), now.latency_ms > 0 && t("from {time} on", { time: duration(now.latency_ms) }), now.errors && t("errors only"), now.answers ? t("with answers") : t("without answers")];
    fill(card, h("div", { class: "row-gap" }, h("span", { class: "badge ready" }, t("a capture runs")), h("span", { class: "grow" }, `${titleOf(nameOf(found) || now.folder)} · ${t("since {time}", { time: moment(now.since_ns / 1e6) })} · ${what.filter(Boolean).join(" · ")}`), h("b", { class: "counters" }), may.stop && button(t("Stop"), () => act("stop", {}), { class: "button danger" }, "stop")), outcome);
    counters(card, found);
    return;
  }
  const input = (id, properties) => h("input", { id: `capture-${id}`, class: "input", autocomplete: "off", ...properties });
  const name = input("name", { pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,99}", spellcheck: "false" });
  const models = input("models", { placeholder: t("all models"), spellcheck: "false" });
  const rate = input("rate", { type: "number", min: 0.01, max: 100, step: "any", value: "100" });
  const latency = input("latency", { type: "number", min: 0, step: "any", value: "0" });
  const errors = h("input", { id: "capture-errors", type: "checkbox" });
  const answers = h("input", { id: "capture-answers", type: "checkbox", checked: true });
  const field = (label, element) => h("div", { class: "field" }, h("label", { for: element.id }, label), element);
  const start = (event) => {
    event.preventDefault();
    act("start", { name: name.value.trim(), models: models.value.split(",").map((each) => each.trim()).filter(Boolean), rate: Number(rate.value) / 100, latency_ms: Number(latency.value), errors: errors.checked, answers: answers.checked });
  };
  fill(card, h("h2", {}, t("Record requests")), h("p", { class: "hint" }, t("Bodies are recorded as they come: treat the folder like the data of your users.")),
    may.start ? h("form", { class: "capture-form", onsubmit: start }, field(t("Name"), name), field(t("Models"), models), field(t("Share in %"), rate), field(t("At least ms"), latency),
      h("label", { class: "choice" }, errors, t("errors only")), h("label", { class: "choice" }, answers, t("with answers")), h("button", { type: "submit", class: "button primary" }, icon("play"), t("Start"))) : null, outcome);
}

function counters(card, found) {
  const place = card.querySelector(".counters");
  if (!place) return;
  const sums = {};
  for (const each of found.processes) for (const [name, number] of Object.entries(each.counts)) sums[name] = (sums[name] || 0) + number;
  const texts = Object.entries(COUNTS).filter(([name]) => sums[name]).map(([name, text]) => t(text, { n: count(sums[name]) }));
  setText(place, [...texts, sums.bytes && bytes(sums.bytes)].filter(Boolean).join(" · "));
}
