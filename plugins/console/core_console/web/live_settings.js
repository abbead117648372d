// Live settings of a model: what is in force, what a change would differ in, and the way back.

import { announce, button, fill, h, icon, notice } from "./dom.js";
import { moment } from "./figures.js";
import { read, send } from "./server.js";
import { offers } from "./store.js";
import { t } from "./text.js";

const CHOICES = { timeout_action: ["REJECT", "DELAY"] };
const MOST_SHOWN = 20; // changes of the history

/** Show the settings of a model in `place`. */
export function liveSettings(place, name) {
  const path = `v2/models/${encodeURIComponent(name)}/settings`;
  const changes = offers("POST /v2/models/{model}/settings");
  const card = h("section", { class: "card wide", "aria-label": t("Live settings") });
  const past = h("section", { class: "card wide", "aria-label": t("Changes so far") });
  fill(place, card, past);
  let values = null;
  let fields = [];
  const outcome = h("p", { role: "status", class: "outcome" });
  const preview = h("div", { "aria-live": "polite" });
  const apply = h("button", { type: "submit", class: "button primary", disabled: true }, t("Apply"));
  const discard = button(t("Discard"), () => show(), { disabled: true });

  async function act(work) {
    try {
      values = await work();
      outcome.className = "outcome good";
      fill(outcome, icon("check"), values.not_written ? values.not_written : t("Changed"));
      announce(t("Changed"));
      show();
    } catch (error) {
      outcome.className = "outcome error";
      fill(outcome, icon("warning"), error.message);
    }
  }

  const operation = (what, more = {}) => act(async () => (await send(`control/model_settings.${what}`, { model: name, ...more })).result);

  /** Return [field, new value] of what the inputs differ in. Raises SyntaxError for what is no JSON. */
  const edited = () => fields.map((each) => [each, each.value()]).filter(([each, value]) => JSON.stringify(value) !== JSON.stringify(each.now));

  function compare() {
    fill(outcome);
    try {
      const found = edited();
      apply.disabled = discard.disabled = !found.length;
      fill(preview, found.length ? difference(found.map(([each, value]) => [each.path.join("."), each.now, value])) : null);
    } catch (error) {
      apply.disabled = true;
      discard.disabled = false;
      fill(preview, h("p", { class: "error" }, icon("warning"), error.message));
    }
  }

  function submit(event) {
    event.preventDefault();
    const body = {};
    for (const [{ path: way }, value] of edited()) {
      let place_of = body;
      for (const step of way.slice(0, -1)) place_of = place_of[step] ??= {};
      place_of[way[way.length - 1]] = value;
    }
    act(() => send(path, body));
  }

  function show() {
    const files = new Map(leaves(values.file).map(([way, value]) => [way.join("."), value]));
    fields = leaves(values.now).map(([way, now]) => new Field(way, now, files.get(way.join(".")), changes, compare));
    const groups = new Map();
    for (const each of fields) groups.set(each.path[0], [...(groups.get(each.path[0]) || []), each]);
    fill(card, h("h2", {}, t("Live settings")), h("p", { class: "hint" }, t("They change without a load. Requests that wait follow the new settings at once.")),
      values.problem ? notice(t("The settings do not fit the file any more"), values.problem, "bad") : null,
      h("form", { onsubmit: submit }, [...groups].map(([group, found]) => h("fieldset", { class: "setting-group" }, h("legend", {}, h("code", {}, group)), found.map((each) => each.row))), preview,
        changes ? h("div", { class: "row-gap" }, apply, discard, Object.keys(values.settings).length && offers("POST /control/model_settings.reset") ? button(t("Back to the configuration"), () => operation("reset")) : null, outcome) : null));
    apply.disabled = discard.disabled = true;
    fill(preview);
    const entries = [...values.history].reverse();
    const back = offers("POST /control/model_settings.rollback");
    fill(past, h("h2", {}, t("Changes so far")), entries.length ? h("ol", { class: "changes" }, entries.slice(0, MOST_SHOWN).map((each) => h("li", {}, h("div", { class: "change-head" }, h("b", {}, `#${each.number}`), h("span", {}, moment(Date.parse(each.time))), h("span", {}, each.operation), each.caller ? h("span", {}, each.caller) : null,
      back && each.number !== values.number ? button(t("Back to this"), () => operation("rollback", { number: each.number }), { class: "button", "aria-label": t("Back to change {n}", { n: each.number }) }) : each.number === values.number ? h("span", { class: "badge ready" }, t("in force")) : null),
    difference(Object.entries(each.changes).map(([way, { from, to }]) => [way, from, to])))))
      : h("p", { class: "hint" }, t("No change yet.")));
  }

  read(path).then((found) => { values = found; show(); }).catch((error) => fill(card, h("h2", {}, t("Live settings")), notice(t("Cannot be read"), error.message, "bad")));
  return { close: () => {} };
}

const asJson = (value) => (value === undefined || value === null ? "–" : JSON.stringify(value));

/** Return lines of a difference: [path, before, after]. text: value → its text. */
export function difference(rows, text = asJson) {
  return h("ul", { class: "code marked difference" }, rows.map(([path, before, after]) => h("li", {}, h("span", {}, `${path}: `), h("del", {}, text(before)), " → ", h("ins", {}, text(after)))));
}

/** Return [path, value] of each value in an object; lists are values. */
function leaves(value, path = []) {
  return Object.entries(value).flatMap(([name, each]) => (each !== null && typeof each === "object" && !Array.isArray(each) ? leaves(each, [...path, name]) : [[[...path, name], each]]));
}

/** One setting: its input, and the value of the configuration where that differs. */
class Field {
  constructor(path, now, file, changes, changed) {
    Object.assign(this, { path, now });
    const id = `setting-${path.join("-")}`;
    const last = path[path.length - 1];
    const common = { id, disabled: !changes, oninput: changed };
    if (typeof now === "boolean") this.input = h("input", { ...common, type: "checkbox", checked: now });
    else if (CHOICES[last]) this.input = h("select", { ...common, class: "input" }, CHOICES[last].map((each) => h("option", { value: each, selected: each === now }, each)));
    else this.input = h("input", { ...common, class: "input mono", value: typeof now === "string" ? now : JSON.stringify(now), inputmode: typeof now === "number" ? "numeric" : null, spellcheck: "false", autocomplete: "off" });
    const differs = file !== undefined && JSON.stringify(file) !== JSON.stringify(now);
    this.row = h("div", { class: "field" }, h("label", { for: id }, path.length > 1 ? path.slice(1).map((each, i) => (i ? [".", h("wbr"), each] : each)) : last), h("div", { class: "setting-value" }, this.input, differs ? h("small", {}, t("configuration: {value}", { value: JSON.stringify(file) })) : null));
  }

  value() {
    if (typeof this.now === "boolean") return this.input.checked;
    if (typeof this.now === "string") return this.input.value;
    try {
      return JSON.parse(this.input.value);
    } catch {
      throw new SyntaxError(t("{name} must be JSON, such as {value}", { name: this.path.join("."), value: JSON.stringify(this.now) }));
    }
  }
}
