// The overview: the server in one line, and a list of all models.

import { budgetText, followBudget } from "./budget.js";
import { fill, h, icon, notice, setText } from "./dom.js";
import { bytes, count, percent } from "./figures.js";
import { ModelRow } from "./model_row.js";
import { isRouter, listen, store, summary } from "./store.js";
import { t } from "./text.js";
import { Tiles } from "./tiles.js";
import { VirtualList } from "./virtual_list.js";
import { workers } from "./workers.js";

const kept = { search: "", sort: "name", up: true, filter: "all" };

const COLUMNS = [
  ["name", "Model", "c-name"], ["rate", "Requests/s", "c-rate"], ["latency", "Latency", "c-latency"], ["pending", "Queue", "c-queue"],
  ["batch", "Batch", "c-batch"], ["busy", "Instances", "c-lanes"], ["memory", "Memory", "c-memory"], ["failed", "Errors", "c-errors"],
];

// Of a router, which knows no queues, batches and instances.
const ROUTED = [
  ["name", "Model", "c-name"], ["rate", "Requests/s", "c-rate"], ["latency", "Latency", "c-latency"], ["flight", "In flight", "c-queue"],
  ["places", "Servers", "c-batch"], ["failed", "Errors", "c-errors"],
];

const FILTERS = [["all", "All"], ["serving", "Serving"], ["active", "Busy"], ["trouble", "Failed"], ["unloaded", "Not loaded"]];

/** Show the overview in `main`; return what ends it. */
export function overview(main) {
  const routed = isRouter();
  const tiles = routed ? null : new ServerTiles();
  const workerList = workers();
  const search = h("input", { type: "search", id: "search", class: "input", placeholder: t("Search models"), autocomplete: "off", spellcheck: "false", value: kept.search, oninput: () => { kept.search = search.value; show(); } });
  const filters = h("div", { class: "chips", role: "group", "aria-label": t("Filter") });
  const head = h("div", { role: "row", class: "model-row model-head", "aria-rowindex": "1" });
  const body = h("div", { role: "rowgroup", class: "rows" });
  const table = h("div", { role: "table", class: `models ${routed ? "routed" : ""}`, "aria-label": t("Models") }, h("div", { role: "rowgroup", class: "rows-head" }, head), body);
  const empty = h("div", {});
  const list = new VirtualList(body, () => (innerWidth < 900 ? 150 : 68), () => new ModelRow());
  fill(main, h("h1", { class: "unseen" }, t("Models")), tiles?.element, workerList.element,
    h("div", { class: "toolbar" }, h("label", { class: "search" }, icon("search"), h("span", { class: "unseen" }, t("Search models")), search, h("kbd", { "aria-hidden": "true" }, "/")), filters), table, empty);

  const headers = (routed ? ROUTED : COLUMNS).map(([key, label, kind]) => {
    const cell = h("div", { role: "columnheader", class: `cell ${kind}` }, h("button", { type: "button", onclick: () => { if (kept.sort === key) kept.up = !kept.up; else { kept.sort = key; kept.up = key === "name"; } show(); } }, t(label)));
    head.append(cell);
    return [key, cell];
  });
  const chips = FILTERS.map(([key, label]) => {
    const number = h("span", { class: "chip-count" });
    const chip = h("button", { type: "button", class: "chip", onclick: () => { kept.filter = key; show(); } }, t(label), number);
    filters.append(chip);
    return [key, chip, number];
  });

  function show() {
    const found = [...store.models.values()].map((model) => [model, summary(model)]);
    tiles?.show(found);
    workerList.show();
    for (const [key, chip, number] of chips) {
      let matching = 0;
      for (const [, each] of found) if (FITS[key](each)) matching += 1;
      setText(number, String(matching));
      chip.setAttribute("aria-pressed", String(kept.filter === key));
      chip.hidden = key !== "all" && key !== kept.filter && !matching;
    }
    for (const [key, cell] of headers) cell.setAttribute("aria-sort", kept.sort === key ? (kept.up ? "ascending" : "descending") : "none");
    const words = kept.search.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = found
      .filter(([model, each]) => FITS[kept.filter](each) && words.every((word) => `${model.name} ${each.main?.row.platform || ""} ${each.state}`.toLowerCase().includes(word)))
      .sort(([a, x], [b, y]) => (kept.up ? 1 : -1) * compare(VALUES[kept.sort](a, x), VALUES[kept.sort](b, y)) || compare(a.name, b.name));
    table.setAttribute("aria-rowcount", String(shown.length + 1));
    table.hidden = !shown.length;
    list.set(shown.map(([model]) => model));
    const nothing = store.at ? (found.length ? notice(t("No model matches"), t("Change the search or the filter.")) : notice(t("No models"), t("The model repositories hold no model. Add a folder with a model, or see the log for what is wrong."))) : h("div", { class: "skeleton", "aria-hidden": "true" }, [1, 2, 3, 4].map(() => h("div", {})));
    if (shown.length) empty.replaceChildren();
    else if (empty.dataset.kind !== `${store.at > 0} ${found.length}` || !empty.firstChild) fill(empty, nothing);
    empty.dataset.kind = `${store.at > 0} ${found.length}`;
    positions = shown.map(([model]) => model.name);
  }

  let positions = [];
  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input,textarea,select");
    if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); search.select(); return; }
    if (event.key === "Escape" && event.target === search) { search.value = kept.search = ""; show(); search.blur(); return; }
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!step || (typing && event.target !== search) || (event.target === search && event.key.length === 1)) return;
    const current = document.activeElement?.closest?.(".model-row")?.querySelector(".row-name")?.textContent;
    const next = Math.max(0, Math.min(positions.length - 1, positions.indexOf(current) + step));
    event.preventDefault();
    list.reveal(next)?.querySelector("a").focus({ preventScroll: true });
  }
  addEventListener("keydown", keys);
  const stop = listen(show);
  const forgetBudget = followBudget();
  show();
  return () => { stop(); forgetBudget(); list.close(); removeEventListener("keydown", keys); };
}

const FITS = {
  all: () => true,
  serving: (each) => each.state === "READY",
  active: (each) => each.rate > 0 || each.pending > 0,
  trouble: (each) => each.state === "UNAVAILABLE" || (each.reason && each.state === "READY"),
  unloaded: (each) => each.state === "UNLOADED",
};

const VALUES = {
  name: (model) => model.name,
  rate: (model, each) => each.rate,
  latency: (model, each) => (each.state === "READY" && Number.isFinite(each.latency) ? each.latency : -1),
  pending: (model, each) => each.pending,
  batch: (model, each) => (each.main?.row.runs ? each.main.row.rows / each.main.row.runs : -1),
  busy: (model, each) => each.main?.history.now("busy") || 0,
  memory: (model, each) => each.memory,
  flight: (model, each) => each.main?.row.flight || 0,
  places: (model, each) => each.main?.row.servers.filter((place) => place.takes).length || 0,
  failed: (model, each) => each.failed,
};

function compare(a, b) {
  return typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
}

/** What the server as a whole does: one tile for each number. */
class ServerTiles extends Tiles {
  constructor() {
    super(t("Server"), [["models", t("Models")], ["rate", t("Requests/s")], ["latency", t("Mean latency")], ["waiting", t("Waiting")], ["failed", t("Errors/s")], ["cpu", t("CPU")], ["memory", t("Memory")]]);
  }

  show(found) {
    const { totals, processes } = store;
    const number = (state) => found.filter(([, each]) => each.state === state).length;
    const [ready, failed, loading, unloaded] = ["READY", "UNAVAILABLE", "LOADING", "UNLOADED"].map(number);
    if (!store.at) return;
    this.put("models", String(ready), [failed && t("{n} failed", { n: failed }), loading && t("{n} loading", { n: loading }), unloaded && t("{n} not loaded", { n: unloaded })].filter(Boolean).join(", ") || t("all are ready"), failed ? "warn" : "");
    this.requests(found.reduce((sum, [, each]) => sum + each.failed, 0));
    const waiting = found.reduce((sum, [, each]) => sum + each.pending, 0);
    this.put("waiting", count(waiting), t("{n} in flight", { n: count(totals.now("flight") || 0) }));
    this.put("cpu", percent(store.cpu), processes.length > 1 ? t("{n} workers", { n: processes.length }) : t("of one core"));
    const memory = processes.reduce((sum, each) => sum + each.rss, 0);
    const held = processes.reduce((sum, each) => sum + each.held, 0);
    const [budget, full] = budgetText() || [];
    this.put("memory", bytes(memory), budget || t("{n} by requests", { n: bytes(held) }), full ? "warn" : "");
  }
}
