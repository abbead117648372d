// One recorded request: its heads, its tensors, and its answer.

import { fill, h, icon } from "./dom.js";
import { bytes, count, duration, moment } from "./figures.js";
import { t } from "./text.js";

/** Return the card of a record in full. */
export function recorded(found) {
  return h("section", { class: "card record" },
    h("h2", {}, found.model || found.path, " ", h("small", {}, `${moment(found.at_ms)} · ${duration(found.duration_ns / 1e6)} · ${found.protocol} ${found.status}${found.client ? ` · ${found.client}` : ""}${found.caller ? ` · ${found.caller}` : ""}`)),
    found.cut ? h("p", { class: "error" }, icon("warning"), t("The call had too many bytes: the rest of it is not recorded.")) : null,
    found.redacted.length ? h("p", { class: "hint" }, t("Not recorded: {names}", { names: found.redacted.join(", ") })) : null,
    part(t("Request"), found.head, found.request),
    found.answer ? part(t("Answer"), found.answer_head, found.answer) : h("p", { class: "hint" }, t("The answer was not recorded.")));
}

function part(title, head, content) {
  const lines = head.split("\r\n");
  return h("div", {}, h("h3", {}, title, " ", h("small", {}, bytes(content.bytes))),
    h("p", { class: "record-line" }, h("code", {}, lines[0])),
    lines.length > 1 ? h("details", {}, h("summary", {}, t("{n} headers", { n: lines.length - 1 })), h("pre", { class: "code", tabindex: "0" }, lines.slice(1).join("\n"))) : null,
    content.text !== undefined ? h("pre", { class: "code", tabindex: "0" }, content.text || " ", content.cut ? "\n…" : "") : content.messages.map((each) => tensors(each)),
    content.messages && content.count > content.messages.length ? h("p", { class: "hint" }, t("{n} messages in all.", { n: count(content.count) })) : null);
}

function tensors(message) {
  if (!message.tensors.length) return h("p", { class: "hint" }, t("No tensor."));
  const table = h("table", { class: "table" }, h("thead", {}, h("tr", {}, [t("Tensor"), t("Type"), t("Values")].map((each) => h("th", { scope: "col" }, each)))));
  const body = h("tbody", {});
  fill(body, message.tensors.map((each) => h("tr", {}, h("th", { scope: "row" }, each.name), h("td", {}, h("code", {}, `${each.datatype} [${each.shape.join(", ")}]`)),
    h("td", { class: "record-values" }, each.elsewhere ? t("in shared memory of the client") : `${each.values.join(", ")}${each.count > each.values.length ? ", …" : ""}`))));
  table.append(body);
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("Tensors") }, table);
}
