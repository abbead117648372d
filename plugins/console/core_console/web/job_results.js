// The results of a job: the first ones, as they come, and all of them as a file.

import { button, fill, h, icon, notice } from "./dom.js";
import { bytes } from "./figures.js";
import { request } from "./server.js";
import { t } from "./text.js";

const MOST_LINES = 50;
const MOST_SHOWN = 20000; // characters of a result

/** Show the results of a job in `place`, until the signal aborts. */
export async function results(place, job, signal) {
  const path = `v2/jobs/${job.id}/results`;
  const list = h("ol", { class: "job-results" });
  const trouble = h("p", { class: "error", role: "alert", hidden: true });
  const ended = !["queued", "running"].includes(job.state);
  const save = async () => {
    try {
      const answer = await request(path, { signal });
      const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: `${job.model}-${job.id}.${job.kind === "request" ? extension(answer) : "jsonl"}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      trouble.hidden = false;
      fill(trouble, icon("warning"), error.message);
    }
  };
  fill(place, h("div", { class: "section-head" }, h("h3", {}, t("Results")), ended && job.requests.succeeded + job.requests.failed ? button(t("Download"), save, {}, "load") : null), trouble, list);
  const enough = new AbortController();
  signal.addEventListener("abort", () => enough.abort());
  try {
    if (job.kind === "request") return fill(list, await only(await request(path, { signal })));
    let shown = 0;
    for await (const line of lines(await request(`${path}?follow=true`, { signal: enough.signal }))) {
      list.append(row(JSON.parse(line)));
      if ((shown += 1) >= MOST_LINES) break;
    }
    if (shown >= MOST_LINES && job.requests.total > shown) place.append(h("p", { class: "hint" }, t("The first {n} results; the file has all.", { n: shown })));
    else if (!shown) fill(list, h("li", {}, t("No result.")));
  } catch (error) {
    if (error.name !== "AbortError" && list.isConnected) fill(list, h("li", {}, notice(t("The results cannot be read"), error.message, error.status === 409 ? "" : "bad")));
  } finally {
    enough.abort();
  }
}

const extension = (answer) => (/json/.test(answer.headers.get("Content-Type") || "") ? "json" : "bin");

/** Return the element of the result of a job with one request. */
async function only(answer) {
  if (/json/.test(answer.headers.get("Content-Type") || "")) return row({ index: 0, status: answer.status, response: await answer.json() });
  return h("li", {}, t("{n} that are no JSON", { n: bytes((await answer.blob()).size) }));
}

function row({ index, source, status, response }) {
  const text = JSON.stringify(response);
  const short = response?.error || (response?.outputs || []).map((each) => `${each.name} ${JSON.stringify(each.data ?? null)}`).join("  ").slice(0, 160) || text.slice(0, 160);
  return h("li", {}, h("details", {}, h("summary", { class: status >= 400 ? "has-errors" : "" }, h("span", { class: "job-index" }, `#${index}`), source ? ` ${source}` : "", " ", status >= 400 ? `${status} ` : "", short), h("pre", { class: "code", tabindex: "0" }, JSON.stringify(response, null, 1).slice(0, MOST_SHOWN))));
}

/** Yield the lines of a Response. */
async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      yield* parts.filter(Boolean);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
