// The workers of a server with several: what each of them takes.

import { fill, h } from "./dom.js";
import { bytes, percent } from "./figures.js";
import { store } from "./store.js";
import { t } from "./text.js";

/** Return { element, show }; the list is hidden for a server with one process. */
export function workers() {
  const element = h("ul", { class: "workers", "aria-label": t("Workers"), hidden: true });
  function show() {
    const { processes } = store;
    element.hidden = processes.length < 2;
    if (element.hidden) return;
    fill(element, processes.map((each) => h("li", { title: `pid ${each.pid}` }, h("span", {}, t("worker {n}", { n: each.number })), h("b", {}, percent(each.cpu)), h("small", {}, bytes(each.rss)))));
  }
  return { element, show };
}
