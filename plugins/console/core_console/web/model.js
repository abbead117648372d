// The page of one model: what it does now, a form to try it, its configuration, its traces.

import { announce, button, fill, h, icon, notice, setText } from "./dom.js";
import { bytes, clock, count, duration } from "./figures.js";
import { STATES } from "./model_row.js";
import { send } from "./server.js";
import { isRouter, listen, offers, store, summary } from "./store.js";
import { t } from "./text.js";

const requests = (row) => (row.ok + row.failed === 1 ? t("1 request") : t("{n} requests", { n: count(row.ok + row.failed) }));

function ownFacts(row) {
  return [row.platform, row.ensemble ? "" : Object.keys(row.lanes).length === 1 ? t("1 instance") : t("{n} instances", { n: Object.keys(row.lanes).length }), row.batch > 1 ? t("batches up to {n}", { n: row.batch }) : t("no batches"), row.decoupled ? t("streams") : "", row.memory ? bytes(row.memory) : "", t("loaded in {time}", { time: duration(row.loaded_s * 1000) }), row.last_ms ? t("last request {time}", { time: clock(row.last_ms) }) : "", requests(row)];
}

function routedFacts(row) {
  const taking = row.servers.filter((each) => each.takes).length;
  return [t("on {n} of {all} servers", { n: taking, all: store.servers.size }), row.versions.map((each) => t("version {n}", { n: each })).join(", "), row.stateful ? t("sequences") : "", row.decoupled ? t("streams") : "", requests(row)];
}

const TABS = [
  ["now", "Now", (may) => may.read_statistics, async () => (isRouter() ? (await import("./routed.js")).routed : (await import("./now.js")).now)],
  ["try", "Try it", (may) => may.change_infer, async () => (await import("./try_it.js")).tryIt],
  ["configuration", "Configuration", (may) => may.read_configuration, async () => (await import("./configuration.js")).configuration],
  ["change", "Change", (may) => may.read_models && (offers("GET /v2/models/{model}/settings") || offers("GET /v2/models/{model}/traffic")), async () => (await import("./change.js")).change],
  ["bench", "Bench", (may) => may.change_infer && offers("POST /v2/models/{model}/bench"), async () => (await import("./bench.js")).bench],
  ["tune", "Tune", (may) => may.change_infer && offers("POST /v2/models/{model}/tune"), async () => (await import("./tune.js")).tune],
  ["traces", "Traces", (may) => may.read_traces, async () => (await import("./traces.js")).tracesOf],
];

/** Show a model in `main`; return what ends it. */
export function model(main, name, wanted = "") {
  const { may } = store.session;
  const title = h("h1", {}, name);
  const badge = h("span", { class: "badge" });
  const facts = h("p", { class: "facts" });
  const actions = h("div", { class: "actions" });
  const trouble = h("div", { "aria-live": "polite" });
  const versions = h("select", { class: "input small", "aria-label": t("Version"), onchange: () => { chosen = Number(versions.value); open(current); } });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": name });
  const panel = h("div", { role: "tabpanel", id: "panel", tabindex: "0", class: "panel" });
  fill(main, h("a", { class: "back", href: "#/models" }, icon("back"), t("Models")),
    h("div", { class: "title-row" }, h("div", { class: "title" }, title, badge, versions), actions), facts, trouble, tabs, panel);
  let chosen = 0;
  let current = "";
  let leave = () => {};
  let update = () => {};
  let state = "";
  let working = false;

  const allowed = TABS.filter(([, , permits]) => permits(may));
  for (const [key, label] of allowed) {
    tabs.append(h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "panel", dataset: { tab: key }, onclick: () => open(key) }, t(label)));
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const keys = allowed.map(([key]) => key);
    const next = keys[(keys.indexOf(current) + step + keys.length) % keys.length];
    open(next);
    tabs.querySelector(`[data-tab=${next}]`).focus();
  });

  async function open(key) {
    const tab = allowed.find(([each]) => each === key) || allowed[0];
    if (!tab) return;
    current = tab[0];
    history.replaceState(null, "", `#/model/${encodeURIComponent(name)}${current === allowed[0][0] ? "" : `/${current}`}`);
    for (const each of tabs.children) {
      const is_open = each.dataset.tab === current;
      each.setAttribute("aria-selected", String(is_open));
      each.tabIndex = is_open ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${current}`);
    const draw = await tab[3]();
    if (current !== tab[0]) return;
    leave();
    update = () => {};
    const found = draw(panel, name, version());
    leave = found?.close || (() => {});
    update = found?.update || update;
    update(version());
  }

  function version() {
    const found = store.models.get(name);
    if (!found) return null;
    return found.versions.get(chosen) || summary(found).main;
  }

  function head() {
    const found = store.models.get(name);
    if (!may.read_statistics) return;
    if (!found) {
      badge.className = "badge unloaded";
      setText(badge, store.at ? t("unknown") : "…");
      if (store.at && state !== "UNKNOWN") { state = "UNKNOWN"; fill(panel, notice(t("No such model"), t("The repositories do not have a model with this name."))); fill(actions); tabs.hidden = true; }
      return;
    }
    const sum = summary(found);
    const numbers = [...found.versions.keys()].sort((a, b) => b - a);
    versions.hidden = numbers.length < 2;
    const key = numbers.join();
    if (versions.dataset.key !== key) {
      versions.dataset.key = key;
      fill(versions, numbers.map((each) => h("option", { value: each }, t("version {n}", { n: each }))));
    }
    const main_row = version()?.row;
    if (main_row) versions.value = main_row.version;
    badge.className = `badge ${STATES[sum.state]}`;
    setText(badge, t({ READY: "ready", UNAVAILABLE: "failed", LOADING: "loading", UNLOADING: "unloading", UNLOADED: "unloaded" }[sum.state]));
    const row = sum.main?.row;
    const words = row?.state !== "READY" ? [] : row.servers ? routedFacts(row) : ownFacts(row);
    setText(facts, words.filter(Boolean).join("  ·  "));
    const serves = sum.state === "READY";
    tabs.hidden = panel.hidden = !serves && !sum.versions.length;
    if (state !== sum.state) {
      const before = state;
      state = sum.state;
      buttons();
      if (serves) { open(current || wanted); if (before) announce(t("{name} is ready", { name })); }
    }
    if (!working) {
      const reason = sum.reason;
      if (trouble.dataset.reason !== `${state} ${reason}`) {
        trouble.dataset.reason = `${state} ${reason}`;
        fill(trouble, reason && state === "UNAVAILABLE" ? notice(found.versions.size && isRouter() ? t("No server answers for this model") : t("This model failed to load"), reason, "bad") : reason && serves ? notice(t("A version failed to load; the one before serves"), reason, "bad")
          : state === "UNLOADED" ? notice(t("This model is not loaded"), reason ? reason : store.session.control_mode === "explicit" ? "" : t("The server loads models by itself; --model-control-mode=explicit lets the page load and unload them."))
            : state === "LOADING" ? h("div", { class: "notice progress" }, h("span", { class: "spinner", "aria-hidden": "true" }), t("It {step}.", { step: reason })) : null);
      }
      if (state === "LOADING") trouble.querySelector(".progress")?.lastChild.replaceWith(t("It {step}.", { step: reason }));
    }
    update(version());
  }

  function buttons() {
    const can = may.change_load && store.session.control_mode === "explicit";
    fill(actions, !can ? null : state === "UNLOADED" || state === "UNAVAILABLE" ? button(t("Load"), () => change("load"), { class: "button primary" }, "load")
      : state === "READY" ? [button(t("Reload"), () => change("load"), {}, "load"), button(t("Unload"), () => change("unload"), { class: "button danger" }, "unload")] : null);
  }

  async function change(what) {
    working = true;
    trouble.dataset.reason = "";
    const begun = Date.now();
    const text = h("span", {});
    fill(trouble, h("div", { class: "notice progress" }, h("span", { class: "spinner", "aria-hidden": "true" }), text));
    for (const each of actions.children) each.disabled = true;
    const tell = () => {
      const row = [...(store.models.get(name)?.versions.values() || [])].find((each) => each.row.state === "LOADING")?.row;
      setText(text, `${what === "load" ? t("Loading") : t("Unloading")} · ${duration(Math.round((Date.now() - begun) / 100) * 100)}${row?.reason ? ` · ${row.reason}` : ""}`);
    };
    tell();
    const timer = setInterval(tell, 200);
    try {
      await send(`v2/repository/models/${encodeURIComponent(name)}/${what}`, {});
      const took = duration(Date.now() - begun);
      const done = what === "load" ? t("Loaded in {time}", { time: took }) : t("Unloaded in {time}", { time: took });
      fill(trouble, h("div", { class: "notice good" }, icon("check"), done));
      announce(done);
      setTimeout(() => { if (!trouble.querySelector(".bad")) { trouble.dataset.reason = ""; working = false; fill(trouble); head(); } }, 2500);
    } catch (error) {
      fill(trouble, notice(what === "load" ? t("The load failed") : t("The unload failed"), error.message, "bad"));
      announce(error.message);
      setTimeout(() => { working = false; }, 1500);
    } finally {
      clearInterval(timer);
      buttons();
    }
  }

  const stop = listen(head);
  if (may.read_statistics) head();
  else open(wanted || allowed[0]?.[0]);
  return () => { stop(); leave(); };
}
