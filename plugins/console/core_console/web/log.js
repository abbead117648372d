// The last warnings and errors of the server's log.

import { fill, h, notice } from "./dom.js";
import { clock } from "./figures.js";
import { read } from "./server.js";
import { listen, store } from "./store.js";
import { t } from "./text.js";

/** Show the log in `main`; return what ends it. */
export function log(main) {
  const list = h("div", {});
  fill(main, h("h1", { class: "page-title" }, t("Log")), h("p", { class: "hint" }, t("The last warnings and errors since the start of the server, the latest first.")), list);
  let seen = -1;
  async function look() {
    if (seen === store.noticed) return;
    seen = store.noticed;
    try {
      const { notices } = await read("console/notices");
      fill(list, notices.length ? h("ol", { class: "log card wide" }, notices.map((each) => {
        const [first, ...rest] = each.text.trim().split("\n");
        return h("li", { class: each.level }, h("time", {}, clock(each.at_ms)), h("span", { class: `badge ${each.level === "warning" ? "loading" : "failed"}` }, t(each.level)), h("div", {}, h("p", {}, first), rest.length ? h("details", {}, h("summary", {}, t("more")), h("pre", { tabindex: "0" }, rest.join("\n"))) : null, h("code", {}, each.place)));
      })) : notice(t("No warning and no error"), t("The server has logged nothing that needs attention.")));
    } catch (error) {
      fill(list, notice(t("The log cannot be read"), error.message, "bad"));
    }
  }
  look();
  return listen(look);
}
