// For callers that may not list models: they name the model that they want to try.

import { fill, h } from "./dom.js";
import { t } from "./text.js";

/** Show a form for the name of a model. */
export function named(main) {
  const name = h("input", { class: "input", id: "name", required: true, autocomplete: "off", spellcheck: "false" });
  fill(main, h("form", { class: "card sign-in", onsubmit: (event) => { event.preventDefault(); location.hash = `#/model/${encodeURIComponent(name.value.trim())}`; } },
    h("h1", {}, t("Try a model")), h("p", {}, t("Your token permits inference, not the list of models: write the name of one.")),
    h("label", { for: "name" }, t("Name of the model")), name, h("button", { type: "submit", class: "button primary" }, t("Open"))));
  name.focus();
}
