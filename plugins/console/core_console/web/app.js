// The console: signs in, connects, and shows the page that the address names.

import { button, fill, h, icon, notice, s, setText } from "./dom.js";
import { overview } from "./overview.js";
import { hasToken, read, Refused, signIn } from "./server.js";
import { connect, disconnect, isRouter, listen, offers, store } from "./store.js";
import { currentLanguage, LANGUAGES, setLanguage, t } from "./text.js";

const main = document.getElementById("main");
const top = document.getElementById("top");

// The theme and the language. The browser keeps them; it never keeps a token.
const kept = {
  get: (name, otherwise) => { try { return localStorage.getItem(`core.${name}`) || otherwise; } catch { return otherwise; } },
  set: (name, value) => { try { localStorage.setItem(`core.${name}`, value); } catch { /* a private window */ } },
};

// The first paint does not wait for the styles of the other pages.
const styled = new Promise((done) => {
  document.head.append(h("link", { rel: "stylesheet", href: "console/pages.css", onload: done, onerror: done }));
});

setLanguage(kept.get("language", navigator.language.startsWith("zh") ? "zh" : "en"));
document.documentElement.dataset.theme = kept.get("theme", "auto");

// [path, label, whether the caller may see it, how to show it]
const PAGES = [
  ["servers", "Servers", () => isRouter(), async () => (await import("./fleet.js")).servers],
  ["models", "Models", (may) => may.read_statistics, async () => overview],
  ["traces", "Traces", (may) => may.read_traces, async () => (await import("./traces.js")).traces],
  ["captures", "Captures", () => offers("GET /v2/captures"), async () => (await import("./captures.js")).captures],
  ["jobs", "Jobs", () => offers("GET /v2/jobs") || offers("POST /control/jobs.show"), async () => (await import("./jobs.js")).jobs],
  ["log", "Log", (may) => may.read_log, async () => (await import("./log.js")).log],
  ["settings", "Settings", (may) => (may.read_log || may.read_traces) && offers("GET /console/operations"), async () => (await import("./settings.js")).settings],
  ["try", "Try a model", (may) => !may.read_statistics && may.change_infer, async () => (await import("./one_model.js")).named],
];

let leave = () => {};
let shown = 0;

async function show() {
  const [page, name, tab] = location.hash.replace(/^#\//, "").split("/");
  const number = (shown += 1);
  const { may } = store.session;
  const first = PAGES.find(([, , allowed]) => allowed(may));
  let load = PAGES.find(([path, , allowed]) => path === page && allowed(may))?.[3];
  if (page === "model" && name) load = async () => (await import("./model.js")).model;
  if (page === "server" && name && isRouter()) load = async () => (await import("./fleet.js")).server;
  if (!load && first) load = first[3];
  const draw = load ? await load() : null;
  if (draw !== overview) await styled;
  if (number !== shown) return;
  leave();
  leave = () => {};
  scrollTo(0, 0);
  for (const link of top.querySelectorAll("nav a")) {
    const current = link.hash === `#/${page || first[0]}` || link.hash === `#/${page}s`;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!draw) fill(main, notice(t("Nothing to show"), t("The roles of this token permit nothing that this page shows.")));
  else leave = draw(main, name ? decodeURIComponent(name) : "", tab) || leave;
  document.title = `${name ? `${decodeURIComponent(name)} · ` : ""}${store.session.name} · core console`;
}

function header() {
  const { session } = store;
  const status = h("span", { class: "status", role: "status" }, h("i", { class: "dot" }), h("span", {}));
  const links = PAGES.filter(([, , allowed]) => allowed(session.may)).map(([path, label]) => h("a", { href: `#/${path}` }, t(label), path === "log" ? h("span", { class: "count", hidden: true }) : null));
  const theme = h("button", { type: "button", class: "button plain", onclick: turn });
  const language = h("select", { class: "input small", "aria-label": t("Language"), onchange: () => { kept.set("language", language.value); setLanguage(language.value); header(); show(); } },
    Object.entries(LANGUAGES).map(([code, label]) => h("option", { value: code, selected: code === currentLanguage() }, label)));
  const out = hasToken() ? button(session.caller ? t("Sign out {name}", { name: session.caller }) : t("Sign out"), () => { signIn(""); start(); }, { class: "button plain" }) : null;
  fill(top, h("div", { class: "top-inner" },
    h("a", { class: "brand", href: "#/" }, s("svg", { viewBox: "0 0 32 32", width: 24, height: 24, "aria-hidden": "true" }, s("use", { href: "#mark" })), h("b", {}, "core"), h("span", { class: "server-name" }, session.name, " ", h("small", {}, session.version))),
    h("nav", { "aria-label": t("Pages") }, links), h("div", { class: "top-end" }, status, language, theme, out)));

  function turn() {
    const next = { auto: "light", light: "dark", dark: "auto" }[document.documentElement.dataset.theme];
    document.documentElement.dataset.theme = next;
    kept.set("theme", next);
    face();
  }
  function face() {
    const now = document.documentElement.dataset.theme;
    fill(theme, icon({ auto: "auto", light: "sun", dark: "moon" }[now]));
    theme.setAttribute("aria-label", t({ auto: "Theme of the system", light: "Light theme", dark: "Dark theme" }[now]));
    theme.title = theme.getAttribute("aria-label");
  }
  face();
  const seen = { noticed: store.noticed };
  const number = top.querySelector(".count");
  stopStatus();
  const live = () => {
    status.className = `status ${store.status}`;
    setText(status.lastChild, t({ live: "live", lost: "no connection, trying again", connecting: "connecting", refused: "refused" }[store.status]));
    if (store.trouble && store.status === "live") setText(status.lastChild, store.trouble);
    document.body.classList.toggle("is-lost", store.status === "lost");
    if (number) {
      if (location.hash === "#/log") seen.noticed = store.noticed;
      const more = store.noticed - seen.noticed;
      number.hidden = more <= 0;
      setText(number, String(more));
    }
    if (store.status === "refused") start(store.trouble);
  };
  stopStatus = listen(live);
  live();
}

let stopStatus = () => {};

/** Ask what the caller may do; ask for a token if that is refused. */
async function start(reason = "") {
  disconnect();
  stopStatus();
  leave();
  leave = () => {};
  try {
    store.session = await read("console/session");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401 || error.status === 403) return ask(hasToken() ? error.message : reason);
    fill(main, notice(t("The server does not answer"), t("The page tries again every second."), "bad"));
    setTimeout(start, 1000);
    return;
  }
  // With open categories a caller without a token may see something, and sign in for more.
  if (!store.session.caller && !Object.values(store.session.may).some(Boolean)) return ask(reason);
  store.at = 0;
  store.status = "connecting";
  store.models.clear();
  store.servers.clear();
  header();
  if (store.session.may.read_statistics) connect();
  else store.status = "live";
  await show();
}

async function ask(reason) {
  await styled;
  const token = h("input", { class: "input", type: "password", id: "token", autocomplete: "off", required: true });
  fill(top, h("div", { class: "top-inner" }, h("span", { class: "brand" }, s("svg", { viewBox: "0 0 32 32", width: 24, height: 24, "aria-hidden": "true" }, s("use", { href: "#mark" })), h("b", {}, "core"))));
  fill(main, h("form", { class: "card sign-in", onsubmit: (event) => { event.preventDefault(); signIn(token.value); start(t("the token is not known")); } },
    h("h1", {}, t("Sign in")),
    h("p", {}, t("This server asks for a token. The page keeps it in memory until you close it.")),
    reason && h("p", { class: "error", role: "alert" }, icon("warning"), reason),
    h("label", { for: "token" }, t("Token")), token, h("button", { class: "button primary", type: "submit" }, t("Sign in"))));
  token.focus();
}

addEventListener("hashchange", () => store.session && show());
start();
