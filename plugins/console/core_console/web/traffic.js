// Traffic by version: the shares of requests that name no version, and how each version answers them.

import { announce, button, fill, h, icon, notice, setText } from "./dom.js";
import { count, duration, percent } from "./figures.js";
import { difference } from "./live_settings.js";
import { read, send } from "./server.js";
import { offers, store } from "./store.js";
import { t } from "./text.js";

const LOOK_MS = 2000;

/** Show the traffic of a model in `place`. */
export function traffic(place, name) {
  const path = `v2/models/${encodeURIComponent(name)}/traffic`;
  const changes = offers("POST /v2/models/{model}/traffic");
  const card = h("section", { class: "card wide", "aria-label": t("Traffic by version") });
  const outcome = h("p", { role: "status", class: "outcome" });
  const preview = h("div", { "aria-live": "polite" });
  const apply = h("button", { type: "submit", class: "button primary", disabled: true }, t("Apply"));
  const discard = button(t("Discard"), () => show(found), { disabled: true });
  let found = null;
  let rows = [];
  let key = "";
  fill(place, card);

  async function look() {
    try {
      const next = await read(path);
      if (!next.versions.length) next.versions = serving(name);
      const now = JSON.stringify([next.traffic, next.versions.map((each) => [each.version, each.ready])]);
      const again = now !== key;
      key = now;
      found = next;
      if (again) show(next);
      else next.versions.forEach((each, i) => rows[i].show(each));
    } catch (error) {
      if (!found) fill(card, h("h2", {}, t("Traffic by version")), notice(t("Cannot be read"), error.message, "bad"));
    }
  }

  const weights = () => Object.fromEntries(rows.map((each) => [each.version, Number(each.input.value)]).filter(([, weight]) => weight > 0));

  function compare() {
    fill(outcome);
    const total = rows.reduce((sum, each) => sum + Number(each.input.value), 0);
    const differing = rows.filter((each) => Math.abs(each.share - (total ? Number(each.input.value) / total : 0)) > 1e-9);
    apply.disabled = !differing.length || !total;
    discard.disabled = !differing.length;
    rows.forEach((each) => each.preview(total));
    fill(preview, differing.length ? difference(differing.map((each) => [t("version {n}", { n: each.version }), percent(each.share), total ? percent(Number(each.input.value) / total) : "–"]), String) : null);
  }

  async function act(work) {
    try {
      await work();
      key = "";
      await look();
      outcome.className = "outcome good";
      fill(outcome, icon("check"), t("Changed"));
      announce(t("Changed"));
    } catch (error) {
      outcome.className = "outcome error";
      fill(outcome, icon("warning"), error.message);
    }
  }

  const submit = (event) => {
    event.preventDefault();
    act(() => send(path, { ...found.traffic, weights: weights() }));
  };

  function show({ traffic: set, versions, rollbacks, source }) {
    rows = versions.map((each) => new Version(each, set, versions, changes, compare));
    const more = set && ["sticky", "rules", "shadow", "rollback"].filter((each) => set[each]);
    fill(card, h("h2", {}, t("Traffic by version")), h("p", { class: "hint" }, set ? t("Requests that name no version are shared by these weights.") : t("Requests that name no version go to the newest version.")),
      h("form", { onsubmit: submit }, h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("Versions") }, h("table", { class: "table traffic" }, h("thead", {}, h("tr", {}, [t("Version"), t("Weight"), t("Share"), t("Requests"), t("Errors"), "p50", "p99"].map((each) => h("th", { scope: "col" }, each)))), h("tbody", {}, rows.map((each) => each.element)))), preview,
        changes && versions.length > 1 ? h("div", { class: "row-gap" }, apply, discard, set && source !== "configuration" && offers("POST /control/traffic.reset") ? button(t("Reset"), () => act(() => send("control/traffic.reset", { model: name }))) : null, outcome) : null),
      versions.length < 2 ? h("p", { class: "hint" }, t("Only one version is loaded: with version_policy, several serve at once.")) : null,
      more?.length ? h("details", {}, h("summary", {}, t("Other settings: {names}", { names: more.join(", ") })), h("pre", { class: "code", tabindex: "0" }, JSON.stringify(Object.fromEntries(more.map((each) => [each, set[each]])), null, 2))) : null,
      rollbacks.length ? h("div", {}, h("h3", {}, t("Taken back by itself")), h("ul", { class: "changes" }, rollbacks.map((each) => h("li", {}, h("pre", { class: "code", tabindex: "0" }, JSON.stringify(each)))))) : null);
    apply.disabled = discard.disabled = true;
    fill(preview);
    versions.forEach((each, i) => rows[i].show(each));
  }

  look();
  const timer = setInterval(look, LOOK_MS);
  return { close: () => clearInterval(timer) };
}

/** Return the versions of a model without settings: the report names none then. */
function serving(name) {
  const found = [...(store.models.get(name)?.versions.values() || [])].filter((each) => each.row.state === "READY");
  return found.map((each) => ({ version: each.row.version, weight: 0, ready: true, window: { requests: NaN, errors: NaN, seconds: 0 } })).sort((a, b) => a.version - b.version);
}

/** The row of one version: its weight, and the answers of the last minutes. */
class Version {
  constructor(found, set, all, changes, changed) {
    this.version = found.version;
    const newest = Math.max(...all.map((each) => each.version));
    const total = all.reduce((sum, each) => sum + each.weight, 0);
    const weight = set ? found.weight : Number(found.version === newest);
    this.share = set ? (total ? found.weight / total : 0) : weight;
    const percents = Math.abs(total - 100) > 1e-9 && Number.isFinite(this.share) ? Number((this.share * 100).toPrecision(6)) : weight;
    this.input = h("input", { class: "input small", type: "number", min: 0, max: 1000000, step: "any", value: String(percents), disabled: !changes || all.length < 2, "aria-label": t("Weight of version {n}", { n: found.version }), oninput: changed });
    this.bar = h("span", { class: "bar best" });
    this.text = h("b", {}, percent(this.share));
    this.cells = ["requests", "errors", "p50", "p99"].map(() => h("td", {}));
    this.element = h("tr", {}, h("th", { scope: "row" }, String(found.version), found.ready ? null : h("span", { class: "badge failed", title: found.reason || null }, t("not ready"))), h("td", {}, this.input), h("td", { class: "share" }, h("div", {}, h("span", { class: "bar-track" }, this.bar), this.text)), this.cells);
    this.bar.style.setProperty("width", `${this.share * 100}%`);
  }

  preview(total) {
    const share = total ? Number(this.input.value) / total : 0;
    this.bar.style.setProperty("width", `${share * 100}%`);
    setText(this.text, total ? percent(share) : "–");
  }

  show({ window: seen }) {
    const texts = [count(seen.requests), count(seen.errors), duration(seen.p50_ms ?? NaN), duration(seen.p99_ms ?? NaN)];
    texts.forEach((text, i) => setText(this.cells[i], text));
    this.element.title = seen.seconds ? t("of the last {time}", { time: duration(seen.seconds * 1000) }) : "";
  }
}
