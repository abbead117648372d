// The servers behind a router: a list of all, and a page for each.

import { Sparkline } from "./charts.js";
import { announce, button, fill, h, icon, notice, setAttribute, setText } from "./dom.js";
import { bytes, count, duration, moment, percent } from "./figures.js";
import { Charts, modelPage, Places, serverPage } from "./routed.js";
import { send } from "./server.js";
import { latencyOf, listen, offers, store } from "./store.js";
import { t } from "./text.js";
import { Tiles } from "./tiles.js";
import { VirtualList } from "./virtual_list.js";

const SHOWN = 60; // seconds
const COLUMNS = [["Server", "c-name"], ["Requests/s", "c-rate"], ["Latency", "c-latency"], ["In flight", "c-queue"], ["Models", "c-batch"], ["Sequences", "c-lanes"], ["Errors", "c-errors"], ["Change", "c-action"]];
const LABELS = { "c-rate": "Requests/s", "c-latency": "Latency", "c-queue": "In flight" };

/** Return [text, class] of a server's state. */
function stateOf(row) {
  if (row.state === "DOWN") return [row.drained ? t("down, drained") : t("down"), "failed"];
  if (row.drained) return row.flight || row.sequences ? [t("draining"), "loading"] : [t("drained"), "unloaded"];
  if (row.state === "NOT_READY") return [t("not ready"), "loading"];
  if (row.state === "UNKNOWN") return [t("not checked yet"), "unloaded"];
  return row.ejected.length ? [t("ejected: {n} models", { n: row.ejected.length }), "loading"] : [t("up"), "ready"];
}

const sinceOf = (row) => [t("since {time}", { time: moment(row.since_ms) }), row.reason].filter(Boolean).join(": ");

/** Return the button that takes a server out or back in; null if the caller may not. */
function drainButton(name, tell) {
  if (!offers("POST /servers/{name}/drain")) return null;
  const element = button("", async () => {
    const what = store.servers.get(element.dataset.name)?.row.drained ? "resume" : "drain";
    element.disabled = true;
    try {
      const found = await send(`servers/${encodeURIComponent(element.dataset.name)}/${what}`);
      const known = store.servers.get(found.name);
      if (known) { known.row.drained = found.drained; known.row.since_ms = found.since_s * 1000; }
      announce(found.drained ? t("{name} gets no new requests", { name: found.name }) : t("{name} gets requests again", { name: found.name }));
      tell("");
    } catch (error) {
      announce(error.message);
      tell(error.message);
    } finally {
      element.disabled = false;
    }
  }, { class: "button small", dataset: { name } });
  return element;
}

function face(element, row) {
  if (!element) return;
  element.dataset.name = row.name;
  setText(element, row.drained ? t("Resume") : t("Drain"));
  setAttribute(element, "aria-label", `${element.textContent} ${row.name}`);
}

/** Show all servers in `main`; return what ends it. */
export function servers(main) {
  const tiles = new FleetTiles();
  const facts = h("p", { class: "facts" });
  const trouble = h("div", { "aria-live": "polite" });
  const head = h("div", { role: "row", class: "model-row model-head", "aria-rowindex": "1" }, COLUMNS.map(([label, kind]) => h("div", { role: "columnheader", class: `cell ${kind}` }, t(label))));
  const body = h("div", { role: "rowgroup", class: "rows" });
  const table = h("div", { role: "table", class: "models fleet", "aria-label": t("Servers") }, h("div", { role: "rowgroup", class: "rows-head" }, head), body);
  const tell = (text) => fill(trouble, text ? notice(t("The change failed"), text, "bad") : null);
  const list = new VirtualList(body, () => (innerWidth < 900 ? 150 : 68), () => new ServerRow(tell));
  const empty = h("div", {});
  fill(main, h("h1", { class: "unseen" }, t("Servers")), tiles.element, facts, trouble, table, empty);

  function show() {
    if (!store.router) return;
    const found = [...store.servers.values()];
    tiles.show(found.map((each) => each.row));
    const { sequences, clients, kept_bytes, hedges, retries, shares } = store.router;
    setText(facts, [t("{n} connections of clients", { n: count(clients) }), t("{n} open sequences", { n: count(sequences) }),
      hedges && t("{n} second copies, {won} of them first", { n: count(hedges.sent), won: count(hedges.won) }),
      retries.lost + retries.unsent + retries.refused > 0 && t("further attempts after: no connection {unsent}, lost {lost}, refused {refused}", retries),
      kept_bytes > 0 && t("{n} of kept bodies", { n: bytes(kept_bytes) }),
      Object.keys(shares).length > 0 && t("shares: {text}", { text: shareText(shares) })].filter(Boolean).join("  ·  "));
    table.setAttribute("aria-rowcount", String(found.length + 1));
    table.hidden = !found.length;
    list.set(found);
    if (found.length) empty.replaceChildren();
    else if (!empty.firstChild) fill(empty, notice(t("No server"), t("The sources of --servers name no server now.")));
  }
  const stop = listen(show);
  show();
  return () => { stop(); list.close(); };
}

const shareText = (shares) => Object.entries(shares).map(([model, each]) => `${model} ${Object.entries(each).map(([name, part]) => `${name} ${part} %`).join(", ")}`).join("; ");

class FleetTiles extends Tiles {
  constructor() {
    super(t("Router"), [["models", t("Servers")], ["rate", t("Requests/s")], ["latency", t("Mean latency")], ["waiting", t("In flight")], ["failed", t("Errors/s")], ["retries", t("Retries/s")], ["cpu", t("CPU of the router")]]);
  }

  show(rows) {
    const { totals, router } = store;
    const up = rows.filter((row) => row.state === "READY" && !row.drained).length;
    const number = (fits) => rows.filter(fits).length;
    const down = number((row) => row.state === "DOWN");
    const drained = number((row) => row.drained);
    const unready = number((row) => row.state === "NOT_READY" && !row.drained);
    this.put("models", `${up} / ${rows.length}`, [down && t("{n} down", { n: down }), drained && t("{n} drained", { n: drained }), unready && t("{n} not ready", { n: unready })].filter(Boolean).join(", ") || t("all are up"), down || unready ? "warn" : "");
    this.requests(rows.reduce((sum, row) => sum + row.failed, 0));
    const wait = Math.max(0, ...rows.map((row) => row.wait_s));
    this.put("waiting", count(totals.now("flight") || 0), wait > 0 ? t("wait up to {time}", { time: duration(wait * 1000) }) : "");
    this.put("retries", count(router.retry_rate), router.refused ? t("{n} found no server", { n: count(router.refused) }) : t("{n} in all", { n: count(router.retried) }), router.retry_rate > 0 ? "bad" : "");
    this.put("cpu", percent(store.cpu), t("of one core"));
  }
}

class ServerRow {
  constructor(tell) {
    this.dot = h("i", { class: "dot" });
    this.name = h("a", { class: "row-name" });
    this.state = h("span", { class: "badge" });
    this.since = h("span", { class: "row-kind" });
    this.rateLine = new Sparkline(96, 26, t("Requests per second, last minute"));
    this.latencyLine = new Sparkline(96, 26, t("Latency, last minute"), "latency");
    this.texts = {};
    const text = (name) => (this.texts[name] = h("b", {}));
    const small = (name) => (this.texts[name] = h("small", {}));
    const cell = (name, ...children) => h("div", { role: "cell", class: `cell ${name}`, dataset: LABELS[name] ? { label: t(LABELS[name]) } : {} }, ...children);
    this.action = drainButton("", tell);
    this.element = h("div", { role: "row", class: "model-row" },
      cell("c-name", this.dot, h("div", { class: "row-names" }, this.name, h("span", { class: "row-sub" }, this.state, this.since))),
      cell("c-rate", h("span", { class: "value" }, text("rate")), this.rateLine.element),
      cell("c-latency", h("span", { class: "value" }, text("latency"), small("quantiles")), this.latencyLine.element),
      cell("c-queue", h("span", { class: "value" }, text("flight"), small("wait"))),
      cell("c-batch", text("models")), cell("c-lanes", text("sequences")), cell("c-errors", text("errors")), cell("c-action", this.action));
    this.element.addEventListener("click", (event) => { if (event.target.closest("a,button") === null && !getSelection().toString()) this.name.click(); });
  }

  show({ row, history }, index) {
    setAttribute(this.element, "aria-rowindex", String(index + 2));
    setText(this.name, row.name);
    this.name.href = serverPage(row.name);
    const [text, kind] = stateOf(row);
    this.dot.className = `dot ${kind}`;
    this.state.className = `badge ${kind}`;
    setText(this.state, text);
    setText(this.since, sinceOf(row));
    this.since.title = this.since.textContent;
    this.element.classList.toggle("is-failed", row.state === "DOWN");
    const put = (name, value, quiet = false) => { setText(this.texts[name], value); this.texts[name].classList.toggle("quiet", quiet); };
    const live = history.size > 0;
    const p50 = history.now("p50");
    put("rate", live ? count(history.now("rate")) : "–", !(history.now("rate") > 0));
    this.rateLine.draw(live ? history.last("rate", SHOWN) : [], SHOWN);
    put("latency", duration(Number.isFinite(p50) ? p50 : latencyOf({ row, history })));
    put("quantiles", Number.isFinite(p50) ? `p95 ${duration(history.now("p95"))} · p99 ${duration(history.now("p99"))}` : row.ok ? t("mean") : t("no request yet"));
    this.latencyLine.draw(live ? history.last(Number.isFinite(p50) ? "p99" : "mean", SHOWN) : [], SHOWN);
    put("flight", count(row.flight), !row.flight);
    put("wait", row.wait_s > 0 ? `≈ ${duration(row.wait_s * 1000)}` : "");
    put("models", count(row.models), !row.models);
    put("sequences", count(row.sequences), !row.sequences);
    put("errors", count(row.failed), !row.failed);
    this.texts.errors.classList.toggle("has-errors", row.failed > 0);
    face(this.action, row);
  }
}

/** Show one server in `main`; return what ends it. */
export function server(main, name) {
  const badge = h("span", { class: "badge" });
  const facts = h("p", { class: "facts" });
  const trouble = h("div", { "aria-live": "polite" });
  const panel = h("div", { class: "panel" });
  const action = drainButton(name, (text) => fill(trouble, text ? notice(t("The change failed"), text, "bad") : null));
  fill(main, h("a", { class: "back", href: "#/servers" }, icon("back"), t("Servers")),
    h("div", { class: "title-row" }, h("div", { class: "title" }, h("h1", {}, name), badge), h("div", { class: "actions" }, action)), facts, trouble, panel);
  const places = new Places(t("Models"), "Model");
  let charts = null;

  function show() {
    const found = store.servers.get(name);
    if (!store.router) return;
    if (action) action.hidden = !found;
    if (!found) {
      badge.hidden = true;
      setText(facts, "");
      charts = null;
      if (!panel.querySelector(".notice")) fill(panel, notice(t("No such server"), t("The sources of --servers name no server of this address now.")));
      return;
    }
    const { row } = found;
    if (!charts) { charts = new Charts(row.bounds_us); fill(panel, charts.elements, places.element); }
    const [text, kind] = stateOf(row);
    badge.hidden = false;
    badge.className = `badge ${kind}`;
    setText(badge, text);
    setText(facts, [sinceOf(row), t("{n} connections", { n: count(row.connections) }), t("{n} open sequences", { n: count(row.sequences) }), t("{n} requests", { n: count(row.ok + row.failed) }),
      row.reports ? t("it reports its load") : t("it reports no load"), row.ejected.length ? t("ejected after failures: {names}", { names: row.ejected.map((each) => each || t("requests without a model")).join(", ") }) : ""].filter(Boolean).join("  ·  "));
    face(action, row);
    charts.draw(found);
    places.draw([...store.models.values()].flatMap((model) => [...model.versions.values()].flatMap(({ row: of }) => (of.servers || []).filter((each) => each.name === name && each.versions.length).map((each) => [model.name, modelPage(model.name), each]))));
  }
  const stop = listen(show);
  show();
  return stop;
}
