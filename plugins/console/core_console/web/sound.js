// Sound as a tensor: which inputs take it, and the samples of a file or of the microphone.

const SHORTEST = 400; // samples of a fixed size: fewer are no sound, but features
const MOST = 16e6; // samples: a quarter of an hour at 16 kHz. More would hold up the page

export const RATES = [8000, 16000, 22050, 24000, 44100, 48000];

/** Return { size, before } for a shape without the batch that can hold samples; else null. size is -1 if it is open. */
export function soundOf(shape, datatype) {
  if (!["FP64", "FP32", "FP16", "BF16", "INT16"].includes(datatype) || !shape.length) return null;
  const before = shape.slice(0, -1);
  const size = shape[shape.length - 1];
  if (before.some((each) => each !== 1) || (size >= 0 && size < SHORTEST)) return null;
  return { size, before };
}

/** Return the samples of a sound file, one channel from -1 to 1, at `rate` a second; null if they are too many. Raises if the browser cannot read it. */
export async function samplesOf(bytes, rate) {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(bytes.slice().buffer);
  if (sound.length > MOST) return null;
  const found = new Float32Array(sound.length);
  for (let channel = 0; channel < sound.numberOfChannels; channel += 1) {
    const samples = sound.getChannelData(channel);
    for (let i = 0; i < samples.length; i += 1) found[i] += samples[i] / sound.numberOfChannels;
  }
  return found;
}

/** Return values for a tensor of `size` samples: shorter sound ends with silence, longer sound is cut. */
export function valuesOf(samples, size, datatype) {
  const values = new Float32Array(size < 0 ? samples.length : size);
  values.set(samples.subarray(0, values.length));
  return datatype === "INT16" ? Int16Array.from(values, (each) => Math.max(-32768, Math.min(32767, Math.round(each * 32768)))) : values;
}
