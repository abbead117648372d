// The tab "Configuration": what the server uses, what it has added to the file, and what a request passes.

import { button, copy, fill, h, notice } from "./dom.js";
import { read } from "./server.js";
import { t } from "./text.js";

/** Show the tab. */
export function configuration(panel, name, version) {
  fill(panel, h("div", { class: "skeleton" }, h("div", {}), h("div", {})));
  const path = `console/models/${encodeURIComponent(name)}${version ? `/versions/${version.row.version}` : ""}`;
  read(path).then((found) => show(panel, found)).catch((error) => fill(panel, notice(t("The configuration cannot be read"), error.message, "bad")));
  return { close: () => {} };
}

function show(panel, found) {
  const added = found.lines.filter(([mark]) => mark === "+").length;
  const text = found.lines.filter(([mark]) => mark !== "-").map(([, line]) => line).join("\n");
  const views = [["completed", t("Completed, {n} lines added", { n: added }), () => code(found.lines)], ["file", found.file ? t("The file config.pbtxt") : t("No file"), () => (found.file ? code(found.file.split("\n").map((line) => [" ", line]), true) : notice(t("There is no config.pbtxt"), found.overridden ? t("The configuration came with a load request.") : t("The server has made all of it from the files of the model.")))]];
  const box = h("div", { class: "code-box" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": t("View") });
  const press = (key) => {
    for (const each of chips.children) each.setAttribute("aria-pressed", String(each.dataset.key === key));
    fill(box, views.find(([each]) => each === key)[2]());
  };
  for (const [key, label] of views) chips.append(h("button", { type: "button", class: "chip", dataset: { key }, onclick: () => press(key) }, label));
  fill(panel, h("section", { class: "card wide" }, h("h2", {}, t("What a request passes")), h("ol", { class: "stages" }, found.stages.map(([stage, file, what]) => h("li", {}, h("strong", {}, stage), h("span", {}, what), h("code", {}, file))))),
    h("section", { class: "card wide" }, h("div", { class: "section-head" }, h("h2", {}, t("Configuration")), h("div", { class: "row-gap" }, chips, button(t("Copy"), () => copy(text, t("Copied")), {}, "copy"))), h("p", { class: "hint" }, t("Green lines are not in the file: the server has added them from the files of the model and from its defaults.")), box));
  press("completed");
}

function code(lines, numbered = false) {
  return h("pre", { class: `code ${numbered ? "numbered" : "marked"}`, tabindex: "0", "aria-label": t("Configuration") }, lines.map(([mark, line], i) => h("span", { class: { "+": "added", "-": "removed" }[mark] || "" }, h("i", { "aria-hidden": "true" }, numbered ? String(i + 1).padStart(3) : mark), mark === " " ? null : h("span", { class: "unseen" }, mark === "+" ? t("added: ") : t("removed: ")), `${line}\n`)));
}
