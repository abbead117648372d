// The part of an input's editor that takes sound: a file, or a recording of the microphone.

import { hasDevices } from "./camera.js";
import { button, fill, h, icon } from "./dom.js";
import { dropArea } from "./drop.js";
import { RATES, samplesOf, valuesOf } from "./sound.js";
import { t } from "./text.js";

const WIDTH = 240; // columns of the drawn sound
const HEIGHT = 40;

export class SoundInput {
  /**
   * spec     { name, datatype } of the input
   * place    what soundOf returns for its shape
   * error    called with the text of what is wrong, or ""
   * opens    returns an AbortSignal: the microphone that is turned on next is off after it
   */
  constructor({ name, datatype }, place, error, opens) {
    Object.assign(this, { datatype, place, error, opens });
    this.reads = 0;
    this.rate = 16000;
    this.preview = h("div", { class: "preview" });
    const pick = h("input", { type: "file", accept: "audio/*,video/*", id: `sound-${name}`, class: "unseen", onchange: () => this.take(pick.files[0]) });
    const drop = dropArea(pick, (file) => this.take(file), icon("sound"), h("span", {}, t("Drop a sound, or choose one")), this.preview);
    const rates = h("select", { class: "input small", "aria-label": t("Samples a second"), onchange: () => { this.rate = Number(rates.value); this.read(); } }, RATES.map((each) => h("option", { value: each, selected: each === this.rate }, String(each))));
    const record = hasDevices() ? button(t("Record"), () => this.record(), {}, "microphone") : null;
    this.stop = button(t("Stop"), () => this.recorder?.stop(), { hidden: true }, "stop");
    this.elements = [pick, drop, h("div", { class: "row-gap" }, h("label", { class: "choice" }, t("Samples a second"), rates), record, this.stop)];
  }

  async take(file) {
    if (!file) return;
    this.name = file.name;
    this.bytes = new Uint8Array(await file.arrayBuffer());
    await this.read();
  }

  async read() {
    if (!this.bytes) return;
    const turn = (this.reads += 1);
    let samples = null;
    let trouble = "";
    try {
      samples = await samplesOf(this.bytes, this.rate);
      if (!samples) trouble = t("“{name}” is too long for this page.", { name: this.name });
    } catch {
      trouble = t("“{name}” is no sound that this browser reads.", { name: this.name });
    }
    if (turn !== this.reads) return; // another file or rate was chosen meanwhile
    this.samples = samples;
    this.error(trouble);
    if (samples) this.draw();
    else fill(this.preview);
  }

  async record() {
    const closed = this.opens();
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      this.error(t("The microphone cannot be used: {text}", { text: error.message }));
      return;
    }
    const off = () => { for (const track of stream.getTracks()) track.stop(); };
    if (closed.aborted) { off(); return; }
    const parts = [];
    const recorder = (this.recorder = new MediaRecorder(stream));
    recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
    recorder.addEventListener("stop", () => {
      off();
      if (this.recorder !== recorder) return; // another recording has begun
      this.stop.hidden = true;
      this.take(new File(parts, t("Recording")));
    });
    closed.addEventListener("abort", () => { if (recorder.state !== "inactive") recorder.stop(); });
    this.stop.hidden = false;
    recorder.start();
  }

  draw() {
    const canvas = h("canvas", { class: "wave", role: "img", "aria-label": t("The sound as the model gets it"), width: WIDTH, height: HEIGHT });
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(this.preview).color;
    const values = valuesOf(this.samples, this.place.size, "FP32");
    const step = values.length / WIDTH;
    for (let x = 0; x < WIDTH; x += 1) {
      let most = 0;
      for (let i = Math.floor(x * step); i < (x + 1) * step && i < values.length; i += 1) most = Math.max(most, Math.abs(values[i]));
      context.fillRect(x, HEIGHT / 2 - most * HEIGHT / 2, 1, Math.max(1, most * HEIGHT));
    }
    fill(this.preview, canvas, h("small", {}, t("{seconds} s, {n} samples", { seconds: (this.samples.length / this.rate).toFixed(2), n: values.length })));
  }

  /** Return { shape, values } without the batch. Raises Error. */
  value() {
    if (!this.samples) throw new Error(t("choose a sound"));
    const values = valuesOf(this.samples, this.place.size, this.datatype);
    return { shape: [...this.place.before, values.length], values };
  }
}
