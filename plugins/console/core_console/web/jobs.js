// Jobs: requests that the server answers later; their state, their results, and a form to submit some.

import { announce, button, fill, h, icon, notice } from "./dom.js";
import { bytes, count, moment } from "./figures.js";
import { submission } from "./job_form.js";
import { results } from "./job_results.js";
import { read, request, send } from "./server.js";
import { offers } from "./store.js";
import { t } from "./text.js";

const RUNNING = new Set(["queued", "running"]);
const BADGES = { queued: "loading", running: "loading", done: "ready", failed: "failed", cancelled: "unloaded" };
const STATES = { queued: "waits", running: "runs", done: "done", failed: "failed", cancelled: "cancelled" };
const BUSY_MS = 700;
const IDLE_MS = 3000;

/** Show the jobs in `main`; return what ends it. */
export function jobs(main) {
  const own = offers("GET /v2/jobs");
  const state = { all: !own, wanted: "", jobs: [], after: null, chosen: "", limit: 50, key: "", closed: false };
  const form = h("div", {});
  const bar = h("div", { class: "toolbar" });
  const list = h("div", { class: "trace-list" });
  const detail = h("div", { class: "trace-detail", "aria-live": "polite" });
  fill(main, h("h1", { class: "page-title" }, t("Jobs")), form, bar, h("div", { class: "split" }, list, detail));
  if (offers("POST /v2/models/{model}/jobs")) submission(form, (job) => { Object.assign(state, { chosen: job.id, all: false }); soon(0); });
  let timer = 0;
  let shown = null;

  function soon(ms) {
    clearTimeout(timer);
    if (!state.closed) timer = setTimeout(look, ms);
  }

  async function look() {
    try {
      const found = state.all
        ? (await send("control/jobs.show", { limit: state.limit, state: state.wanted })).result
        : await read(`v2/jobs?${new URLSearchParams({ limit: state.limit, ...(state.wanted && { state: state.wanted }) })}`);
      Object.assign(state, { jobs: found.jobs, after: found.after });
      show();
    } catch (error) {
      if (error.status) fill(list, notice(t("Jobs cannot be read"), error.message, "bad"));
    }
    soon(state.jobs.some((each) => RUNNING.has(each.state)) ? BUSY_MS : IDLE_MS);
  }

  function change(more) {
    Object.assign(state, more);
    state.key = "";
    look();
  }

  function show() {
    const key = JSON.stringify([state.jobs, state.chosen, state.all, state.wanted]);
    if (key === state.key) return;
    state.key = key;
    const focused = document.activeElement?.dataset?.key;
    const chip = (name, label, pressed, act) => h("button", { type: "button", class: "chip", dataset: { key: name }, "aria-pressed": String(pressed), onclick: act }, label);
    fill(bar, own && offers("POST /control/jobs.show") ? h("div", { class: "chips", role: "group", "aria-label": t("Callers") }, chip("mine", t("Mine"), !state.all, () => change({ all: false })), chip("all", t("All callers"), state.all, () => change({ all: true }))) : null,
      h("div", { class: "chips", role: "group", "aria-label": t("Filter") }, [["", "All"], ["running", "runs"], ["queued", "waits"], ["done", "done"], ["failed", "failed"]].map(([name, label]) => chip(`state-${name}`, t(label), state.wanted === name, () => change({ wanted: name })))));
    fill(list, state.jobs.length ? h("ul", { class: "trace-rows" }, state.jobs.map((job) => h("li", {}, h("button", { type: "button", dataset: { key: job.id }, "aria-pressed": String(job.id === state.chosen), class: job.state === "failed" ? "failed" : "", onclick: () => { state.chosen = job.id; state.key = ""; show(); } },
      h("span", { class: "trace-name" }, job.model, h("small", {}, job.caller || job.id.slice(0, 8))), h("span", { class: "badge " + BADGES[job.state] }, t(STATES[job.state])),
      h("span", { class: "trace-track" }, h("span", { style: { width: `${job.progress * 100}%` } })), h("b", {}, `${count(job.requests.succeeded + job.requests.failed)} / ${count(job.requests.total)}`)))))
      : notice(t("No job"), state.wanted ? t("No job is in this state.") : t("Submit a request or a file of requests: the server answers it beside direct requests.")),
    state.after ? button(t("More"), () => change({ limit: Math.min(1000, state.limit * 4) })) : null);
    if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    if (!state.jobs.some((each) => each.id === state.chosen)) state.chosen = state.jobs[0]?.id || "";
    const job = state.jobs.find((each) => each.id === state.chosen);
    if (!job) { shown = null; fill(detail); return; }
    if (list.querySelector("[aria-pressed=true]") === null) list.querySelector(`[data-key="${CSS.escape(job.id)}"]`).setAttribute("aria-pressed", "true");
    if (shown?.id !== job.id || shown.all !== state.all) {
      shown?.close();
      shown = new JobCard(job.id, state.all, () => soon(0));
      fill(detail, shown.element);
    }
    shown.show(job);
  }

  look();
  return () => { state.closed = true; clearTimeout(timer); shown?.close(); };
}

/** One job: its times, what may be done with it, and its results. */
class JobCard {
  constructor(id, all, changed) {
    Object.assign(this, { id, all, changed, key: "", control: new AbortController() });
    this.head = h("div", {});
    this.trouble = h("p", { class: "error", role: "alert", hidden: true });
    this.results = h("div", {});
    this.element = h("section", { class: "card", "aria-label": t("Job") }, this.head, this.trouble, this.results);
  }

  close() {
    this.control.abort();
  }

  show(job) {
    const key = JSON.stringify(job);
    if (key === this.key) return;
    const first = this.key === "";
    this.key = key;
    const ended = !RUNNING.has(job.state);
    const time = (label, text) => text && [h("dt", {}, label), h("dd", {}, moment(Date.parse(text)))];
    const cancel = this.all ? offers("POST /control/jobs.cancel") : offers("POST /v2/jobs/{job}/cancel");
    fill(this.head, h("div", { class: "section-head" }, h("h2", {}, h("a", { href: `#/model/${encodeURIComponent(job.model)}` }, job.model), " ", h("span", { class: "badge " + BADGES[job.state] }, t(STATES[job.state]))),
      h("div", { class: "actions" }, !ended && cancel && button(t("Cancel"), () => this.act("cancel"), { class: "button danger", disabled: Boolean(job.cancelling) }, "stop"),
        ended && !this.all && button(t("Delete"), () => this.act("delete"), { class: "button danger" }))),
    h("div", { class: "replay-progress" }, h("progress", { max: 1, value: job.progress, "aria-label": t("Progress") }), h("span", {}, t("{n} of {all} requests", { n: count(job.requests.succeeded + job.requests.failed), all: count(job.requests.total) }), job.requests.failed ? h("b", { class: "has-errors" }, ` · ${t("{n} failed", { n: count(job.requests.failed) })}`) : null)),
    h("dl", { class: "job-facts" }, job.caller && [h("dt", {}, t("Caller")), h("dd", {}, job.caller)], time(t("Submitted"), job.created), time(t("Begun"), job.started), time(t("Ended"), job.ended), time(t("Deadline"), job.deadline), time(t("Kept until"), job.expires), h("dt", {}, t("Results")), h("dd", {}, bytes(job.result_bytes)), h("dt", {}, t("Number")), h("dd", {}, h("code", {}, job.id))),
    job.error ? notice(t("The job failed"), job.error, "bad") : null);
    if (!this.all && (ended || job.kind !== "request")) {
      if (first || (ended && !this.ended)) results(this.results, job, this.control.signal);
    }
    if (ended && !this.ended && !first) announce(t("The job has ended"));
    this.ended = ended;
  }

  async act(what) {
    try {
      if (what === "delete") await request(`v2/jobs/${this.id}`, { method: "DELETE" });
      else if (this.all) await send("control/jobs.cancel", { job: this.id });
      else await send(`v2/jobs/${this.id}/cancel`);
      announce(what === "delete" ? t("The job is deleted") : t("The job is cancelled"));
      this.changed();
    } catch (error) {
      this.trouble.hidden = false;
      fill(this.trouble, icon("warning"), error.message);
    }
  }
}
