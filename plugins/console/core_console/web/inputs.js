// The editor of one input: values, random numbers, a picture, a sound or a file.

import { camera, hasDevices } from "./camera.js";
import { button, fill, h, icon } from "./dom.js";
import { dropArea } from "./drop.js";
import { pictureOf, resized, SCALES, valuesOf } from "./images.js";
import { soundOf } from "./sound.js";
import { SoundInput } from "./sound_input.js";
import { elements, isFloat, isText, written } from "./tensors.js";
import { t } from "./text.js";

const MOST_WRITTEN = 2048; // values that a text area shows

export class InputEditor {
  /**
   * spec      { name, datatype, shape, optional }; -1 in the shape is open
   * batched   whether the first size is that of the batch
   * closed    an AbortSignal: camera and microphone are off after it, and after another kind of value is chosen
   */
  constructor(spec, batched, closed) {
    this.spec = spec;
    this.batched = batched;
    this.closed = closed;
    this.device = new AbortController(); // of the camera or the microphone
    this.inner = batched ? spec.shape.slice(1) : spec.shape;
    this.picture = isText(spec.datatype) ? null : pictureOf(this.inner);
    this.sound = soundOf(this.inner, spec.datatype);
    this.single = isText(spec.datatype) && elements(this.inner.map((size) => Math.abs(size))) === 1;
    const size = elements(spec.shape.map((each) => (each < 0 ? 1 : each)));
    this.modes = [size <= MOST_WRITTEN && "values", !isText(spec.datatype) && "random", (this.picture || isText(spec.datatype)) && "image", this.sound && "sound", "file"].filter(Boolean);
    this.mode = this.picture && this.inner.length === 3 ? "image" : this.modes[0];
    this.seed = 1;
    this.included = !spec.optional;
    const id = `input-${spec.name}`;
    this.shape = h("input", { class: "input small mono", value: spec.shape.map((each) => (each < 0 ? 1 : each)).join(", "), "aria-label": t("Shape of {name}", { name: spec.name }) });
    this.shapeRow = h("label", { class: "choice" }, t("Shape"), this.shape);
    this.open = spec.shape.some((each) => each < 0) && !this.single;
    this.text = h(size === 1 && !isText(spec.datatype) ? "input" : "textarea", { class: "input mono", id, rows: this.single ? 3 : Math.min(8, 2 + Math.floor(size / 16)), spellcheck: "false", value: first(spec.datatype, size), oninput: () => { this.error(""); } });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": t("Kind of value") });
    this.body = h("div", { class: "input-body" });
    this.trouble = h("p", { class: "error", role: "alert", hidden: true });
    const use = spec.optional ? h("input", { type: "checkbox", id: `use-${spec.name}`, checked: false, onchange: () => { this.included = use.checked; this.show(); } }) : null;
    this.element = h("fieldset", { class: "input-editor" }, h("legend", {}, use && [use, h("label", { for: `use-${spec.name}` }, t("use"))], h("b", {}, spec.name), h("code", {}, `${spec.datatype} [${spec.shape.join(", ")}]`), spec.optional && h("small", {}, t("optional"))), this.chips, this.shapeRow, this.body, this.trouble);
    for (const mode of this.modes) this.chips.append(h("button", { type: "button", class: "chip", dataset: { mode }, onclick: () => { this.mode = mode; this.show(); } }, t({ values: isText(spec.datatype) ? "Text" : "Values", random: "Random", image: "Image", sound: "Sound", file: "File" }[mode])));
    this.show();
  }

  error(text) {
    this.trouble.hidden = !text;
    fill(this.trouble, text && icon("warning"), text);
  }

  /** Turn camera and microphone off; return the AbortSignal of the next one. */
  another() {
    this.device.abort();
    this.device = new AbortController();
    return AbortSignal.any([this.closed, this.device.signal]);
  }

  show() {
    this.error("");
    this.device.abort();
    this.chips.hidden = this.body.hidden = !this.included;
    for (const each of this.chips.children) each.setAttribute("aria-pressed", String(each.dataset.mode === this.mode));
    this.shapeRow.hidden = !this.included || !this.open || ["image", "sound"].includes(this.mode);
    if (this.chips.children.length < 2) this.chips.hidden = true;
    fill(this.body, { values: () => [h("label", { class: "unseen", for: this.text.id }, this.spec.name), this.text, this.hint()], random: () => this.random(), image: () => this.image(), sound: () => this.soundInput().elements, file: () => this.file() }[this.mode]());
  }

  hint() {
    if (this.single) return null;
    return h("p", { class: "hint" }, isText(this.spec.datatype) ? t("One element for each line, or a JSON list.") : t("JSON, or numbers with blanks between them."));
  }

  random() {
    const seed = h("input", { class: "input small", type: "number", value: this.seed, id: `seed-${this.spec.name}`, oninput: () => { this.seed = Number(seed.value); } });
    return [h("div", { class: "row-gap" }, h("label", { for: seed.id }, t("Seed")), seed, h("button", { type: "button", class: "button", onclick: () => { this.seed = Math.floor(Math.random() * 1e6); seed.value = this.seed; } }, icon("dice"), t("Other numbers"))), h("p", { class: "hint" }, isFloat(this.spec.datatype) ? t("Numbers from 0 to 1.") : t("Whole numbers from 0 to 9."))];
  }

  image() {
    const { name } = this.spec;
    this.options ||= { scale: this.picture?.channels === 1 ? "0…1" : "ImageNet", fit: "cover", bgr: false, invert: false };
    if (this.spec.datatype === "UINT8") this.options.scale = "0…255";
    const preview = h("div", { class: "preview" });
    const pick = h("input", { type: "file", accept: "image/*", id: `image-${name}`, class: "unseen", onchange: () => this.take(pick.files[0], preview) });
    const drop = dropArea(pick, (file) => this.take(file, preview), icon("image"), h("span", {}, t("Drop a picture, or choose one")), preview);
    const choose = (label, key, values) => { const select = h("select", { class: "input small", "aria-label": label, onchange: () => { this.options[key] = select.value; this.redraw(preview); } }, values.map((each) => h("option", { value: each, selected: each === this.options[key] }, t(each)))); return h("label", { class: "choice" }, label, select); };
    const tick = (label, key) => { const box = h("input", { type: "checkbox", checked: this.options[key], onchange: () => { this.options[key] = box.checked; this.redraw(preview); } }); return h("label", { class: "choice" }, box, label); };
    this.redraw(preview);
    const seen = h("div", { class: "stack" });
    const shoot = () => camera(seen, (bitmap, bytes) => { Object.assign(this, { bitmap, bytes }); this.error(""); this.redraw(preview); }, (text) => this.error(text), this.another());
    return [pick, drop, hasDevices() && h("div", {}, button(t("Camera"), shoot, { class: "button" }, "camera")), seen, this.picture ? h("div", { class: "row-gap" }, choose(t("Size"), "fit", ["cover", "contain", "stretch"]), choose(t("Numbers"), "scale", Object.keys(SCALES)), this.picture.channels === 3 && tick("BGR", "bgr"), tick(t("Invert"), "invert")) : h("p", { class: "hint" }, t("The model gets the file as it is."))];
  }

  soundInput() {
    this.samples ||= new SoundInput(this.spec, this.sound, (text) => this.error(text), () => this.another());
    return this.samples;
  }

  async take(file, preview) {
    if (!file) return;
    try {
      this.bitmap = await createImageBitmap(file);
      this.bytes = new Uint8Array(await file.arrayBuffer());
      this.error("");
    } catch {
      this.bitmap = null;
      this.error(t("“{name}” is no picture that this browser reads.", { name: file.name }));
    }
    this.redraw(preview);
  }

  redraw(preview) {
    if (!this.bitmap) return;
    this.canvas = resized(this.bitmap, this.picture || { height: this.bitmap.height, width: this.bitmap.width }, this.options.fit);
    this.canvas.className = "pixels";
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", t("The picture as the model gets it"));
    fill(preview, this.canvas, h("small", {}, `${this.bitmap.width} × ${this.bitmap.height} → ${this.canvas.width} × ${this.canvas.height}`));
  }

  file() {
    const name = h("span", { class: "hint" }, this.fileName || t("raw bytes, little endian"));
    const pick = h("input", { type: "file", id: `file-${this.spec.name}`, onchange: async () => { this.raw = new Uint8Array(await pick.files[0].arrayBuffer()); this.fileName = `${pick.files[0].name}, ${this.raw.length} bytes`; name.textContent = this.fileName; } });
    return [h("label", { for: pick.id, class: "unseen" }, t("File")), pick, name];
  }

  /** Return { shape, values } or { shape, bytes }, or null for an input that is left out. Raises Error. */
  value() {
    if (!this.included) return null;
    const { datatype, name } = this.spec;
    const shape = this.shape.value.split(",").map((each) => Number(each.trim()));
    try {
      if (shape.some((each) => !Number.isInteger(each) || each < 0)) throw new Error(t("the shape must be whole numbers"));
      if (this.mode === "image") return this.pictureValue(shape);
      if (this.mode === "sound") {
        const found = this.soundInput().value();
        return { shape: this.batched ? [1, ...found.shape] : found.shape, values: found.values };
      }
      if (this.mode === "file") {
        if (!this.raw) throw new Error(t("choose a file"));
        return isText(datatype) ? { shape, values: [this.raw] } : { shape, bytes: this.raw };
      }
      if (this.mode === "random") return { shape, values: randoms(elements(shape), this.seed, isFloat(datatype), datatype === "BOOL") };
      const values = written(datatype, this.text.value, this.single);
      return { shape: fitted(shape, this.spec.shape, values.length), values };
    } catch (error) {
      this.error(error.message);
      throw new Error(`${name}: ${error.message}`);
    }
  }

  pictureValue(shape) {
    if (!this.bitmap) throw new Error(t("choose a picture"));
    if (!this.picture) return { shape, values: [this.bytes] };
    const { at, height, width, channels } = this.picture;
    const own = { HW: [height, width], CHW: [channels, height, width], HWC: [height, width, channels] }[at];
    return { shape: this.batched ? [1, ...own] : own, values: valuesOf(this.canvas, this.picture, this.options), picture: true };
  }

  /** Return what a sample keeps: texts, not pictures or files. */
  kept() {
    return { mode: this.mode, text: this.text.value, shape: this.shape.value, seed: this.seed, included: this.included };
  }

  restore(kept) {
    if (!kept || !this.modes.includes(kept.mode)) return;
    Object.assign(this, { mode: kept.mode, seed: kept.seed, included: kept.included });
    const use = this.element.querySelector(`[id="use-${CSS.escape(this.spec.name)}"]`);
    if (use) use.checked = kept.included;
    this.text.value = kept.text;
    this.shape.value = kept.shape;
    this.show();
  }
}

function first(datatype, size) {
  if (isText(datatype)) return "";
  const zero = datatype === "BOOL" ? "true" : "0";
  return Array(Math.min(size, MOST_WRITTEN)).fill(zero).join(" ");
}

/** Return the shape with its last open size as large as the number of values makes it. */
function fitted(shape, spec, number) {
  if (elements(shape) === number) return shape;
  const open = spec.map((size, i) => (size < 0 ? i : -1)).filter((i) => i >= 0);
  for (const at of open.reverse()) {
    const others = elements(shape.filter((_, i) => i !== at));
    if (others && number % others === 0) return shape.map((size, i) => (i === at ? number / others : size));
  }
  throw new Error(t("{n} values, but the shape needs {most}", { n: number, most: elements(shape) }));
}

function randoms(number, seed, float, bool) {
  let state = (seed * 2654435761 + 12345) >>> 0 || 1;
  const next = () => { state ^= state << 13; state >>>= 0; state ^= state >>> 17; state ^= state << 5; state >>>= 0; return state / 4294967296; };
  for (let i = 0; i < 8; i += 1) next();
  return Array.from({ length: number }, () => (bool ? next() < 0.5 : float ? Math.fround(Number(next().toFixed(4))) : Math.floor(next() * 10)));
}
