// Settings of the log and of traces, and the other control operations of the server.

import { announce, button, fill, h, icon, notice } from "./dom.js";
import { read, send } from "./server.js";
import { store } from "./store.js";
import { t } from "./text.js";

const HIDDEN = new Set(["log_file", "trace_file", "trace_mode", "kept"]);
const CHOICES = { trace_level: ["OFF", "TIMESTAMPS", "TENSORS"], log_format: ["default", "ISO8601"] };

/** Show the settings in `main`. */
export function settings(main) {
  const { may, remote_settings: remote } = store.session;
  const log = h("section", { class: "card" });
  const trace = h("section", { class: "card" });
  const operations = h("section", { class: "card wide" });
  fill(main, h("h1", { class: "page-title" }, t("Settings")), remote ? null : notice(t("Settings are read only"), t("The server was started with --allow-remote-settings=false.")), h("div", { class: "grid" }, may.read_log && log, may.read_traces && trace), operations);
  if (may.read_log) form(log, t("Log"), "v2/logging", may.change_logging && remote);
  if (may.read_traces) form(trace, t("Traces"), "v2/trace/setting", may.change_trace && remote);
  if (may.change_load || may.read_models) control(operations);
  return () => {};
}

async function form(card, title, path, changes) {
  fill(card, h("h2", {}, title), h("div", { class: "skeleton" }, h("div", {})));
  let values;
  try {
    values = await read(path);
  } catch (error) {
    fill(card, h("h2", {}, title), notice(t("Cannot be read"), error.message, "bad"));
    return;
  }
  const fields = Object.entries(values).filter(([name]) => !HIDDEN.has(name)).map(([name, value]) => {
    const id = `${path}/${name}`.replaceAll("/", "-");
    const input = inputOf(name, value, id, !changes);
    return { name, value, input, row: h("div", { class: "field" }, h("label", { for: id }, name), input) };
  });
  const hidden = Object.entries(values).filter(([name, value]) => HIDDEN.has(name) && value);
  const outcome = h("p", { role: "status", class: "outcome" });
  const apply = async (event) => {
    event.preventDefault();
    const body = Object.fromEntries(fields.map(({ name, value, input }) => [name, valueOf(name, value, input)]).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(values[name])));
    try {
      values = await send(path, body);
      outcome.className = "outcome good";
      fill(outcome, icon("check"), t("Changed"));
      announce(t("Changed"));
    } catch (error) {
      outcome.className = "outcome error";
      fill(outcome, icon("warning"), error.message);
    }
  };
  fill(card, h("h2", {}, title), h("form", { class: "fields", onsubmit: apply }, fields.map((each) => each.row), hidden.map(([name, value]) => h("div", { class: "field" }, h("span", {}, name), h("code", {}, String(value)))), changes ? h("div", { class: "row-gap" }, h("button", { type: "submit", class: "button primary" }, t("Apply")), outcome) : null));
}

function inputOf(name, value, id, disabled) {
  if (CHOICES[name]) {
    const now = Array.isArray(value) ? value[0] : value;
    return h("select", { id, class: "input", disabled }, CHOICES[name].map((each) => h("option", { value: each, selected: each === now }, each)));
  }
  if (typeof value === "boolean") return h("input", { id, type: "checkbox", checked: value, disabled });
  return h("input", { id, class: "input", value: String(value), inputmode: "numeric", disabled });
}

function valueOf(name, before, input) {
  if (Array.isArray(before)) return [input.value];
  if (typeof before === "boolean") return input.checked;
  return typeof before === "number" ? Number(input.value) : input.value;
}

async function control(card) {
  const { may } = store.session;
  const allowed = { "model-repository": [may.read_models, may.change_load], trace: [may.read_traces, may.change_trace], logging: [may.read_log, may.change_logging], inference: [may.change_infer, may.change_infer], statistics: [may.read_statistics, may.read_statistics], metrics: [may.read_statistics, may.read_statistics] };
  const { operations } = await read("console/operations");
  const rows = operations.filter((each) => (allowed[each.category] || [true, true])[each.changes ? 1 : 0]);
  fill(card, h("h2", {}, t("Other control operations")), rows.length ? rows.map(operation) : h("p", { class: "hint" }, t("Your roles permit none, or no plugin adds one.")));
}

function operation(found) {
  const answer = h("div", { role: "status" });
  const inputs = Object.entries(found.arguments).map(([name, schema]) => {
    const id = `${found.name}-${name}`;
    const type = schema.type || "";
    const input = type === "boolean" ? h("input", { id, type: "checkbox" }) : h("input", { id, class: "input", placeholder: type || "JSON", required: found.required.includes(name) });
    return { name, type, input, row: h("div", { class: "field" }, h("label", { for: id }, name, found.required.includes(name) ? "" : ` (${t("optional")})`), input) };
  });
  const call = async (event) => {
    event.preventDefault();
    try {
      const body = {};
      for (const { name, type, input } of inputs) {
        if (type === "boolean") body[name] = input.checked;
        else if (input.value !== "") body[name] = type === "string" ? input.value : JSON.parse(input.value);
      }
      const result = await send(`control/${found.name}`, body);
      fill(answer, h("p", { class: "outcome good" }, icon("check"), t("Done")), result.result === null ? null : h("pre", { class: "code", tabindex: "0" }, JSON.stringify(result.result, null, 2)));
    } catch (error) {
      fill(answer, h("p", { class: "outcome error" }, icon("warning"), error.message));
    }
  };
  return h("form", { class: "operation", onsubmit: call }, h("div", {}, h("h3", {}, h("code", {}, found.name), found.changes ? h("span", { class: "badge loading" }, t("changes")) : null), h("p", {}, found.summary)), inputs.map((each) => each.row), button(t("Run"), null, { type: "submit", class: "button" }, "play"), answer);
}
