// A chat with a model that speaks OpenAI's routes, token by token.

import { button, fill, h, icon } from "./dom.js";
import { count, duration } from "./figures.js";
import { events, request } from "./server.js";
import { t } from "./text.js";

/** Show a chat in `panel`. `closed` is aborted when the page leaves it. */
export function chat(panel, model, closed) {
  const messages = [];
  const list = h("ol", { class: "chat", "aria-live": "polite", "aria-label": t("Conversation") });
  const text = h("textarea", { class: "input", id: "message", rows: 2, placeholder: t("Write a message"), onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); } } });
  const most = h("input", { class: "input small", type: "number", id: "most-tokens", min: 1, value: 256 });
  const sendButton = h("button", { type: "submit", class: "button primary" }, icon("send"), t("Send"));
  const form = h("form", { class: "chat-form", onsubmit: ask }, h("label", { class: "unseen", for: "message" }, t("Message")), text, h("div", { class: "row-gap" }, sendButton, h("label", { for: "most-tokens" }, t("Tokens at most")), most, button(t("New conversation"), () => { messages.length = 0; fill(list); text.focus(); }, { class: "button plain" })));
  fill(panel, h("section", { class: "card wide" }, list, form));

  async function ask(event) {
    event.preventDefault();
    if (!text.value.trim()) return;
    messages.push({ role: "user", content: text.value });
    list.append(h("li", { class: "user" }, h("p", {}, text.value)));
    text.value = "";
    const words = h("p", {});
    const facts = h("small", {}, "…");
    list.append(h("li", { class: "assistant" }, words, facts));
    sendButton.disabled = true;
    const stop = new AbortController();
    const end = () => stop.abort();
    closed.addEventListener("abort", end);
    const begun = performance.now();
    let firstMs = NaN;
    let pieces = 0;
    try {
      const answer = await request("v1/chat/completions", { method: "POST", signal: stop.signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ model, messages, stream: true, max_tokens: Number(most.value) || 256 }) });
      for await (const [, data] of events(answer)) {
        if (data === "[DONE]") break;
        const found = JSON.parse(data);
        if (found.error) throw new Error(found.error.message || found.error);
        const piece = found.choices?.[0]?.delta?.content;
        if (!piece) continue;
        pieces += 1;
        if (pieces === 1) firstMs = performance.now() - begun;
        words.textContent += piece;
        const all = performance.now() - begun;
        facts.textContent = `${t("first token {time}", { time: duration(firstMs) })}${pieces > 1 ? ` · ${count((pieces - 1) / ((all - firstMs) / 1000))} ${t("tokens/s")}` : ""} · ${duration(all)}`;
        words.scrollIntoView?.({ block: "nearest" });
      }
      messages.push({ role: "assistant", content: words.textContent });
      if (!pieces) facts.textContent = t("The model answered with no text.");
    } catch (error) {
      if (error.name === "AbortError") return;
      messages.pop();
      facts.className = "error";
      facts.textContent = error.message;
    } finally {
      closed.removeEventListener("abort", end);
      sendButton.disabled = false;
    }
  }
}
