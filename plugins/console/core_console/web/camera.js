// A picture from the camera of this machine. Browsers give it to pages of this machine and over HTTPS only.

import { button, fill, h } from "./dom.js";
import { t } from "./text.js";

/** Whether the browser lets this page ask for camera and microphone. */
export const hasDevices = () => Boolean(navigator.mediaDevices?.getUserMedia);

/**
 * Show what the camera sees in `place`, with a button that takes a picture.
 *
 * taken    called with the picture, an ImageBitmap, and its bytes as PNG
 * failed   called with a text if there is no camera, or the browser may not use it
 * closed   an AbortSignal: the camera is off after it
 */
export async function camera(place, taken, failed, closed) {
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: true });
  } catch (error) {
    failed(t("The camera cannot be used: {text}", { text: error.message }));
    return;
  }
  const off = () => { for (const track of stream.getTracks()) track.stop(); place.replaceChildren(); };
  if (closed.aborted) { off(); return; }
  closed.addEventListener("abort", off);
  const video = h("video", { class: "camera", autoplay: true, playsinline: true, "aria-label": t("What the camera sees") });
  video.muted = true;
  video.srcObject = stream;
  const take = async () => {
    const picture = await createImageBitmap(video);
    off();
    taken(picture, await png(picture));
  };
  fill(place, video, h("div", { class: "row-gap" }, button(t("Take the picture"), take, { class: "button primary" }, "image"), button(t("Camera off"), off, {}, "stop")));
  await video.play();
}

async function png(picture) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
}
