// The chips that choose how many seconds charts show. All pages share the choice.

import { h } from "./dom.js";
import { t } from "./text.js";

const SPANS = [[60, "1 min"], [300, "5 min"], [900, "15 min"]];

/** Seconds that charts show. */
export let span = 60;

/** Return the chips; `changed` is called after a choice. */
export function spans(changed) {
  const chips = SPANS.map(([seconds, label]) => h("button", { type: "button", class: "chip", onclick: () => { span = seconds; press(); changed(); } }, label));
  const press = () => {
    for (const [i, [seconds]] of SPANS.entries()) chips[i].setAttribute("aria-pressed", String(seconds === span));
  };
  press();
  return h("div", { class: "chips", role: "group", "aria-label": t("Time range") }, chips);
}
