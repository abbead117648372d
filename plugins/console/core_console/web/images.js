// Pictures as tensors: the place of height, width and colours in a shape, resizing, normalising, and back.

/** Return { height, width, channels, at } for a shape without the batch that can hold a picture; else null. */
export function pictureOf(shape) {
  const open = (size) => (size > 0 ? size : 224);
  const side = (size) => size < 0 || size >= 4;
  if (shape.length === 2 && side(shape[0]) && side(shape[1])) return { height: open(shape[0]), width: open(shape[1]), channels: 1, at: "HW" };
  if (shape.length !== 3) return null;
  if ([1, 3].includes(shape[0]) && side(shape[1]) && side(shape[2])) return { height: open(shape[1]), width: open(shape[2]), channels: shape[0], at: "CHW" };
  if ([1, 3].includes(shape[2]) && side(shape[0]) && side(shape[1])) return { height: open(shape[0]), width: open(shape[1]), channels: shape[2], at: "HWC" };
  return null;
}

// name → [what is subtracted from a channel, what it is multiplied with], for values from 0 to 255
export const SCALES = {
  "0…255": [[0, 0, 0], [1, 1, 1]],
  "0…1": [[0, 0, 0], [1 / 255, 1 / 255, 1 / 255]],
  "−1…1": [[127.5, 127.5, 127.5], [1 / 127.5, 1 / 127.5, 1 / 127.5]],
  "ImageNet": [[123.675, 116.28, 103.53], [1 / 58.395, 1 / 57.12, 1 / 57.375]],
  "0…16": [[0, 0, 0], [16 / 255, 16 / 255, 16 / 255]],
};

/** Draw a picture into a canvas of the size of a tensor. `fit` is "cover", "contain" or "stretch". */
export function resized(bitmap, { height, width }, fit) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  const scale = fit === "cover" ? Math.max(width / bitmap.width, height / bitmap.height) : Math.min(width / bitmap.width, height / bitmap.height);
  const [w, h] = fit === "stretch" ? [width, height] : [bitmap.width * scale, bitmap.height * scale];
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
  return canvas;
}

/** Return the values of a canvas in the order of a tensor. */
export function valuesOf(canvas, { channels, at }, { scale = "0…1", bgr = false, invert = false }) {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const [means, factors] = SCALES[scale];
  const found = new Float32Array(width * height * channels);
  const size = width * height;
  for (let pixel = 0; pixel < size; pixel += 1) {
    const rgb = [data[pixel * 4], data[pixel * 4 + 1], data[pixel * 4 + 2]].map((value) => (invert ? 255 - value : value));
    const colours = channels === 1 ? [0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]] : bgr ? rgb.reverse() : rgb;
    for (let channel = 0; channel < channels; channel += 1) {
      const place = at === "CHW" ? channel * size + pixel : pixel * channels + channel;
      found[place] = (colours[channel] - means[channel]) * factors[channel];
    }
  }
  return found;
}

/** Draw values as a picture, from their smallest value to their largest. */
export function drawn(values, { height, width, channels, at }) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  const size = width * height;
  for (let pixel = 0; pixel < size; pixel += 1) {
    for (let colour = 0; colour < 3; colour += 1) {
      const channel = channels === 1 ? 0 : colour;
      const value = values[at === "CHW" ? channel * size + pixel : pixel * channels + channel];
      image.data[pixel * 4 + colour] = ((value - low) / (high - low || 1)) * 255;
    }
    image.data[pixel * 4 + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
