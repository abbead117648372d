// The tab "Try it": a form from the metadata of a model, its answer, and commands that do the same.

import { output } from "./answers.js";
import { announce, button, copy, fill, h, icon, notice } from "./dom.js";
import { count, duration } from "./figures.js";
import { infer, stream } from "./inference.js";
import { InputEditor } from "./inputs.js";
import { hasToken, modelPath, read } from "./server.js";
import { snippets } from "./snippets.js";
import { offers, store } from "./store.js";
import { encoded } from "./tensors.js";
import { t } from "./text.js";

/** Show the tab. */
export function tryIt(panel, name, version) {
  const number = version?.row.version || "";
  fill(panel, h("div", { class: "skeleton" }, h("div", {}), h("div", {})));
  const abort = new AbortController();
  load(panel, name, number, abort.signal).catch((error) => { if (!abort.signal.aborted) fill(panel, notice(t("The model cannot be tried"), error.message, "bad")); });
  return { close: () => abort.abort() };
}

async function load(panel, name, version, closed) {
  const [metadata, config] = await Promise.all([read(modelPath(name, version)), read(`${modelPath(name, version)}/config`)]);
  const chats = speaksText(metadata) && (await speaks(name));
  if (closed.aborted) return;
  if (!chats) return form(panel, name, version, metadata, config, closed);
  const { chat } = await import("./chat.js");
  const body = h("div", {});
  const chips = h("div", { class: "chips", role: "group", "aria-label": t("Kind of request") });
  const press = (key) => {
    for (const each of chips.children) each.setAttribute("aria-pressed", String(each.dataset.key === key));
    if (key === "chat") chat(body, name, closed);
    else form(body, name, version, metadata, config, closed);
  };
  for (const [key, label] of [["chat", "Chat"], ["tensors", "Tensors"]]) chips.append(h("button", { type: "button", class: "chip", dataset: { key }, onclick: () => press(key) }, t(label)));
  fill(panel, chips, body);
  press("chat");
}

function speaksText({ inputs, outputs }) {
  return outputs.some((each) => each.name === "text_output") && inputs.some((each) => ["text_input", "messages"].includes(each.name));
}

async function speaks(name) {
  if (!offers("POST /v1/chat/completions") || !store.session.may.read_models) return false;
  try {
    return (await read("v1/models")).data.some((each) => each.id === name);
  } catch {
    return false;
  }
}

function form(panel, name, version, metadata, config, closed) {
  const batched = (config.max_batch_size || 0) > 0;
  const optional = new Set((config.input || []).filter((each) => each.optional).map((each) => each.name));
  const editors = metadata.inputs.map((spec) => new InputEditor({ ...spec, optional: optional.has(spec.name) }, batched, closed));
  if (editors.every((each) => each.spec.optional) && editors.length) {
    editors[0].included = true;
    editors[0].element.querySelector("input[type=checkbox]").checked = true;
    editors[0].show();
  }
  const labels = new Map((config.output || []).filter((each) => each.label_filename).map((each) => [each.name, (each.dims || []).reduce((product, size) => product * Number(size), 1)]));
  const decoupled = Boolean(config.model_transaction_policy?.decoupled);
  const sequences = Boolean(config.sequence_batching);
  const best = h("input", { type: "checkbox", id: "best-classes", checked: true });
  const sequence = sequenceFields();
  const parameters = h("textarea", { class: "input mono", id: "parameters", rows: 2, placeholder: '{"key": "value"}', spellcheck: "false" });
  const answer = h("section", { class: "answer", "aria-live": "polite" }, notice(t("No answer yet"), t("Fill in the inputs, and run the model.")));
  const code = h("section", { class: "card wide" });
  const run = h("button", { type: "submit", class: "button primary" }, icon("play"), t("Run"));
  const key = `core.sample.${name}`;
  const save = button(t("Save as sample"), () => { try { localStorage.setItem(key, JSON.stringify(editors.map((each) => [each.spec.name, each.kept()]))); announce(t("Saved in this browser")); fill(saved, icon("check"), t("Saved in this browser")); } catch (error) { fill(saved, error.message); } }, { class: "button plain" }, "save");
  const saved = h("span", { class: "hint" });
  const element = h("form", { class: "try", novalidate: true, onsubmit: submit }, h("div", { class: "inputs card" }, h("h2", {}, t("Inputs")), editors.map((each) => each.element), sequences && sequence.element, labels.size > 0 && h("label", { class: "choice" }, best, t("Ask for the best classes, with labels")),
    h("details", {}, h("summary", {}, t("Parameters of the request")), h("label", { for: "parameters", class: "unseen" }, t("Parameters of the request")), parameters), h("div", { class: "row-gap" }, run, save, saved)), h("div", { class: "card" }, h("h2", {}, t("Answer")), answer));
  fill(panel, element, code);
  try {
    const kept = new Map(JSON.parse(localStorage.getItem(key) || "[]"));
    for (const each of editors) each.restore(kept.get(each.spec.name));
  } catch { /* no storage, or an old sample */ }

  function asked() {
    const inputs = editors.map((each) => [each, each.value()]).filter(([, value]) => value).map(([each, value]) => ({ name: each.spec.name, datatype: each.spec.datatype, ...value }));
    const more = parameters.value.trim() ? JSON.parse(parameters.value) : {};
    if (sequences) Object.assign(more, sequence.value());
    const outputs = metadata.outputs.map((each) => ({ name: each.name, ...(best.checked && labels.has(each.name) ? { parameters: { classification: Math.min(10, Math.abs(labels.get(each.name)) || 10) } } : {}) }));
    return { inputs, parameters: more, outputs };
  }

  async function submit(event) {
    event.preventDefault();
    let found;
    try {
      found = asked();
    } catch (error) {
      fill(answer, notice(t("The request is not complete"), error.message, "bad"));
      return;
    }
    run.disabled = true;
    try {
      if (decoupled) await streamed(found);
      else {
        const { outputs, ms } = await infer(name, version, found.inputs, found.outputs, found.parameters);
        fill(answer, h("p", { class: "took" }, icon("check"), t("Answered in {time}", { time: duration(ms) })), outputs.map((each) => output(each, batched && !each.classes, { outputs, picture: editors.find((editor) => editor.included && editor.mode === "image")?.canvas })));
      }
      announce(t("The answer is here"));
    } catch (error) {
      if (!closed.aborted) fill(answer, notice(error.status ? t("The server refused the request ({n})", { n: error.status }) : t("The request failed"), error.message, "bad"));
    } finally {
      run.disabled = false;
      commands(found);
    }
  }

  async function streamed(found) {
    const stop = new AbortController();
    closed.addEventListener("abort", () => stop.abort());
    const head = h("p", { class: "took" });
    const text = h("div", { class: "texts", hidden: true }, h("p", {}));
    const list = h("ol", { class: "events" });
    fill(answer, h("div", { class: "row-gap" }, head, button(t("Stop"), () => stop.abort(), {}, "stop")), text, list);
    let number = 0;
    let firstMs = NaN;
    try {
      for await (const [response, ms] of stream(name, version, found.inputs, found.parameters, stop.signal)) {
        number += 1;
        if (number === 1) firstMs = ms;
        fill(head, t("{n} responses, the first after {first}, {time} in all", { n: number, first: duration(firstMs), time: duration(ms) }), number > 1 ? ` · ${count((number - 1) / ((ms - firstMs) / 1000))} /s` : "");
        if (typeof response.text_output === "string") { text.hidden = false; text.firstChild.textContent += response.text_output; }
        const { model_name, model_version, ...rest } = response;
        if (number <= 500) list.append(h("li", {}, h("code", {}, JSON.stringify(rest).slice(0, 2000)), h("small", {}, duration(ms))));
      }
      if (!number) fill(head, t("The model ended without a response."));
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      head.append(` · ${t("stopped")}`);
    } finally {
      answer.querySelector("button")?.remove();
    }
  }

  function commands(found) {
    const inputs = found.inputs.map((each) => ({ ...each, size: each.bytes ? each.bytes.length : encoded(each.datatype, each.values).length }));
    const { client_port, client_scheme } = store.session; // of a router, whose clients use another port
    const clients = client_port ? `${client_scheme}://${location.hostname}:${client_port}/` : document.baseURI;
    const grpc = store.session.grpc_port ? `${location.hostname}:${store.session.grpc_port}` : "";
    const rows = snippets({ model: name, version, ...found, inputs, stream: decoupled, token: hasToken(), grpc, clients });
    const box = h("pre", { class: "code", tabindex: "0", "aria-label": t("Command") });
    const chips = h("div", { class: "chips", role: "group", "aria-label": t("Command") });
    let text = "";
    const press = (title) => { for (const each of chips.children) each.setAttribute("aria-pressed", String(each.textContent === title)); text = rows.find(([each]) => each === title)[1]; fill(box, text); };
    for (const [title] of rows) chips.append(h("button", { type: "button", class: "chip", onclick: () => press(title) }, title));
    fill(code, h("div", { class: "section-head" }, h("h2", {}, t("The same from a program")), h("div", { class: "row-gap" }, chips, button(t("Copy"), () => copy(text, t("Copied")), {}, "copy"))), box);
    press(rows[0][0]);
  }
}

function sequenceFields() {
  const id = h("input", { class: "input small", id: "sequence-id", type: "number", min: 1, value: 1 });
  const start = h("input", { type: "checkbox", checked: true });
  const end = h("input", { type: "checkbox", checked: true });
  return {
    element: h("fieldset", { class: "input-editor" }, h("legend", {}, h("b", {}, t("Sequence"))), h("div", { class: "row-gap" }, h("label", { for: "sequence-id" }, t("Id")), id, h("label", { class: "choice" }, start, t("start")), h("label", { class: "choice" }, end, t("end")))),
    value: () => ({ sequence_id: Number(id.value), sequence_start: start.checked, sequence_end: end.checked }),
  };
}
