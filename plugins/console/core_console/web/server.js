// Talks to the server. The token is kept in this variable only: closing the page forgets it.

let token = "";

/** Use a token from now on; "" for none. */
export function signIn(text) {
  token = text.trim();
}

export const hasToken = () => token !== "";

/** The address of a path of this server, also behind a proxy that adds a prefix. */
export function address(path) {
  return new URL(path, document.baseURI).href;
}

/** An answer that is no success: its status, and the text of the server. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Return the Response of a request; raise Refused for a status of 400 and more. */
export async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(address(path), { ...options, headers, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer");
  }
  if (!answer.ok) throw new Refused(answer.status, await textOf(answer));
  return answer;
}

async function textOf(answer) {
  const text = await answer.text();
  try {
    const found = JSON.parse(text.replace(/^data: /, ""));
    return typeof found.error === "string" ? found.error : found.error?.message || text;
  } catch {
    return text || `status ${answer.status}`;
  }
}

/** Return the JSON of an answer to GET. */
export async function read(path) {
  return (await request(path)).json();
}

/** Send JSON, and return the JSON of the answer; null for an answer without a body. */
export async function send(path, body = {}, options = {}) {
  const answer = await request(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, ...options });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** Yield [name, data] of each event of a Response. */
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      while ((end = rest.search(/\r?\n\r?\n/)) >= 0) {
        const event = rest.slice(0, end);
        rest = rest.slice(rest[end] === "\r" ? end + 4 : end + 2);
        let name = "message";
        const data = [];
        for (const line of event.split(/\r?\n/)) {
          if (line.startsWith("event:")) name = line.slice(6).trim();
          else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
        }
        if (data.length) yield [name, data.join("\n")];
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Path segment of a model. */
export function modelPath(name, version = "") {
  return `v2/models/${encodeURIComponent(name)}${version ? `/versions/${version}` : ""}`;
}
