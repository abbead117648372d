// Makes elements. Texts become text nodes, so that a model's name or an answer is never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element. Properties: class, on<event>, dataset, aria-… and attributes; children: nodes and texts. */
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** Return an element of SVG. */
export function s(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked") element[name] = value;
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace the children of an element, and return it. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Set the text of an element only if it differs: an equal text costs no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set an attribute only if it differs. */
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

const PATHS = {
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm5.2 12.2L21 21",
  sun: "M12 7.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM12 2v2.4M12 19.6V22M2 12h2.4M19.6 12H22M4.9 4.9l1.7 1.7M17.4 17.4l1.7 1.7M19.1 4.9l-1.7 1.7M6.6 17.4l-1.7 1.7",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z",
  auto: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm0 0v18",
  back: "M15 5l-7 7 7 7",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  play: "M7 4.5v15l12-7.5Z",
  stop: "M6 6h12v12H6z",
  load: "M12 4v11M7 10.5l5 5 5-5M4.5 20h15",
  unload: "M12 15V4M7 8.5l5-5 5 5M4.5 20h15",
  dice: "M4 4h16v16H4zM8.5 8.5h.01M15.5 15.5h.01M12 12h.01",
  save: "M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-6h8v6",
  warning: "M12 4 2.5 20h19ZM12 10v4.5M12 17.3v.2",
  check: "M4.5 12.5l5 5 10-11",
  image: "M4 5h16v14H4zM4 16l4.5-5 4 4 2.5-2.5L20 17M15.5 9.3h.01",
  camera: "M4 7.5h4L9.5 5h5L16 7.5h4V19H4ZM12 9.6a3.3 3.3 0 1 1 0 6.6 3.3 3.3 0 0 1 0-6.6Z",
  sound: "M4 10v4M8 7v10M12 4v16M16 8v8M20 10.5v3",
  microphone: "M12 3.5a2.8 2.8 0 0 1 2.8 2.8v5a2.8 2.8 0 0 1-5.6 0v-5A2.8 2.8 0 0 1 12 3.5ZM6 11a6 6 0 0 0 12 0M12 17v3.5",
  send: "M4 12 20 4l-5 16-3.5-6.5Z",
  clock: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 4v5.4l3.4 2",
};

/** Return a small picture that a screen reader does not read. */
export function icon(name) {
  return s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: PATHS[name] }));
}

/** Let a screen reader say a text. */
export function announce(text) {
  const place = document.getElementById("announcer");
  place.textContent = "";
  setTimeout(() => { place.textContent = text; }, 50);
}

/** Return a button. */
export function button(label, onclick, properties = {}, picture = "") {
  return h("button", { type: "button", class: "button", onclick, ...properties }, picture && icon(picture), label);
}

/** Return a box with a title, for an empty state or an error. */
export function notice(title, text, kind = "", ...more) {
  return h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : null },
    h("strong", {}, title), text && h("p", {}, text), ...more);
}

/** Copy a text, and say so. */
export async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "unseen", value: text, "aria-hidden": "true" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(done);
}
