// The form that submits a job: a request, or a batch with a line of JSON for each request.

import { announce, button, fill, h, icon } from "./dom.js";
import { dropArea } from "./drop.js";
import { bytes } from "./figures.js";
import { modelPath, read, request } from "./server.js";
import { store } from "./store.js";
import { t } from "./text.js";

const MOST_VALUES = 1024; // of an example

/** Show the form in `place`. done(job): the server has accepted a job. */
export function submission(place, done) {
  const known = [...store.models.keys()].sort();
  const model = h("input", { id: "job-model", class: "input", required: true, list: "job-models", autocomplete: "off", spellcheck: "false" });
  const text = h("textarea", { id: "job-text", class: "input mono", rows: 4, spellcheck: "false" });
  const deadline = h("input", { id: "job-deadline", class: "input", type: "number", min: 1, step: "any" });
  const file = h("input", { id: "job-file", class: "unseen", type: "file", accept: ".json,.jsonl,.ndjson" });
  const named = h("span", {});
  const trouble = h("p", { class: "error", role: "alert", hidden: true });
  const drop = dropArea(file, (found) => take(found), icon("load"), h("span", {}, t("Drop a file with a line of JSON for each request, or choose one")), named);
  const take = (found) => { chosen = found; named.textContent = found ? `${found.name} · ${bytes(found.size)}` : ""; text.disabled = Boolean(found); clear.hidden = !found; };
  const clear = button(t("No file"), () => { file.value = ""; take(null); }, { hidden: true });
  let chosen = null;
  file.addEventListener("change", () => take(file.files[0] || null));

  function refuse(words) {
    trouble.hidden = !words;
    fill(trouble, words && icon("warning"), words);
  }

  async function example() {
    refuse("");
    try {
      text.value = JSON.stringify(exampleOf(await read(modelPath(model.value.trim()))));
    } catch (error) {
      refuse(error.message);
    }
  }

  async function submit(event) {
    event.preventDefault();
    refuse("");
    const body = chosen || text.value.trim();
    if (!chosen && !body) return refuse(t("Write a request, or choose a file."));
    const lines = chosen ? !/\.json$/i.test(chosen.name) : /\}\s*\n\s*\{/.test(body);
    const headers = { "Content-Type": lines ? "application/jsonl" : "application/json", ...(deadline.value && { "Job-Deadline-Secs": deadline.value }) };
    try {
      const answer = await request(`${modelPath(model.value.trim())}/jobs`, { method: "POST", body, headers });
      announce(t("The job is accepted"));
      done(await answer.json());
    } catch (error) {
      refuse(error.message);
    }
  }

  const field = (label, element) => h("div", { class: "field" }, h("label", { for: element.id }, label), element);
  fill(place, h("form", { class: "card job-form", onsubmit: submit }, h("h2", {}, t("Submit a job")), h("datalist", { id: "job-models" }, known.map((each) => h("option", { value: each }))),
    h("div", { class: "capture-form" }, field(t("Model"), model), field(t("Deadline in s"), deadline), button(t("Example"), example)),
    h("div", { class: "grid" }, h("div", { class: "field" }, h("label", { for: "job-text" }, t("Requests")), text), h("div", { class: "row-gap" }, file, drop, clear)),
    h("p", { class: "hint" }, t("One JSON object is one request, as for infer. Several lines, each with an object, are a batch.")), h("div", { class: "row-gap" }, h("button", { type: "submit", class: "button primary" }, icon("send"), t("Submit")), trouble)));
}

/** Return a request with zeros for a model with this metadata. */
function exampleOf(metadata) {
  return { inputs: metadata.inputs.filter((each) => !each.optional).map(({ name, datatype, shape: open }) => {
    const shape = open.map((size) => (size < 0 ? 1 : Number(size)));
    const size = shape.reduce((product, each) => product * each, 1);
    if (size > MOST_VALUES) throw new Error(t("The inputs of this model are too large for an example."));
    return { name, datatype, shape, data: Array(size).fill(datatype === "BYTES" ? "text" : datatype === "BOOL" ? false : 0) };
  }) };
}
