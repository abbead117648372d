// Tensors: values to bytes and back, as the binary form of the v2 protocol has them (little endian).

const KINDS = { FP64: Float64Array, FP32: Float32Array, INT8: Int8Array, INT16: Int16Array, INT32: Int32Array, INT64: BigInt64Array, UINT8: Uint8Array, UINT16: Uint16Array, UINT32: Uint32Array, UINT64: BigUint64Array, BOOL: Uint8Array };

export const isText = (datatype) => datatype === "BYTES";
export const isFloat = (datatype) => /^(FP|BF)/.test(datatype);

/** Return the number of elements of a shape without open sizes. */
export const elements = (shape) => shape.reduce((product, size) => product * size, 1);

/** Return the bytes of values: numbers, booleans, or for BYTES texts and Uint8Arrays. */
export function encoded(datatype, values) {
  if (isText(datatype)) {
    const parts = Array.from(values, (each) => (each instanceof Uint8Array ? each : new TextEncoder().encode(String(each))));
    const found = new Uint8Array(parts.reduce((sum, each) => sum + 4 + each.length, 0));
    const view = new DataView(found.buffer);
    let at = 0;
    for (const each of parts) {
      view.setUint32(at, each.length, true);
      found.set(each, at + 4);
      at += 4 + each.length;
    }
    return found;
  }
  if (datatype === "FP16" || datatype === "BF16") {
    const convert = datatype === "FP16" ? toHalf : toBrain;
    return new Uint8Array(Uint16Array.from(values, convert).buffer);
  }
  const Kind = KINDS[datatype];
  if (!Kind) throw new Error(`datatype ${datatype} is not known to this page`);
  if (values instanceof Kind) return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const big = datatype.endsWith("64") && datatype !== "FP64";
  return new Uint8Array(Kind.from(values, (each) => (big ? BigInt(Math.trunc(Number(each))) : Number(each))).buffer);
}

/** Return the values in bytes: numbers, booleans, or texts for BYTES. */
export function decoded(datatype, bytes) {
  if (isText(datatype)) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const found = [];
    for (let at = 0; at < bytes.length;) {
      const size = view.getUint32(at, true);
      found.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + size)));
      at += 4 + size;
    }
    return found;
  }
  const copy = bytes.slice().buffer;
  if (datatype === "FP16") return Array.from(new Uint16Array(copy), fromHalf);
  if (datatype === "BF16") return Array.from(new Uint16Array(copy), (each) => new Float32Array(Uint32Array.of(each << 16).buffer)[0]);
  const Kind = KINDS[datatype];
  if (!Kind) throw new Error(`datatype ${datatype} is not known to this page`);
  const values = new Kind(copy);
  if (datatype === "BOOL") return Array.from(values, Boolean);
  return datatype.endsWith("64") && datatype !== "FP64" ? Array.from(values, Number) : Array.from(values);
}

function toBrain(value) {
  return new Uint32Array(Float32Array.of(Number(value)).buffer)[0] >>> 16;
}

function toHalf(value) {
  const bits = new Uint32Array(Float32Array.of(Number(value)).buffer)[0];
  const sign = (bits >>> 16) & 0x8000;
  const exponent = ((bits >>> 23) & 0xff) - 112;
  const mantissa = bits & 0x7fffff;
  if (((bits >>> 23) & 0xff) === 0xff) return sign | 0x7c00 | (mantissa ? 0x200 : 0);
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent <= 0) return exponent < -10 ? sign : sign | ((mantissa | 0x800000) >>> (14 - exponent));
  return sign | ((exponent << 10) + ((mantissa + 0x1000) >>> 13));
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const mantissa = bits & 0x3ff;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + mantissa / 1024) : 2 ** -14 * (mantissa / 1024));
}

/** Return name → dims of "pixels:3,224,224; words:16". A name may have colons. */
export function shapes(text) {
  const found = text.split(";").map((each) => each.trim()).filter(Boolean).map((each) => [each.slice(0, Math.max(0, each.lastIndexOf(":"))).trim(), each.slice(each.lastIndexOf(":") + 1)]);
  return Object.fromEntries(found.map(([name, dims]) => [name, dims.split(",").map((each) => Number(each.trim() || NaN))]));
}

/** Return values as nested lists of a shape. */
export function nested(values, shape) {
  if (shape.length === 0) return values[0];
  if (shape.length === 1) return Array.from(values);
  const size = elements(shape.slice(1));
  return Array.from({ length: shape[0] }, (_, i) => nested(values.slice(i * size, (i + 1) * size), shape.slice(1)));
}

/** Return the elements that a person has written: JSON, or numbers with commas or blanks between them. */
export function written(datatype, text, single = false) {
  if (isText(datatype)) {
    if (single) return [text];
    try {
      const found = JSON.parse(text);
      if (Array.isArray(found)) return found.flat(Infinity).map(String);
    } catch { /* plain lines */ }
    return text.split("\n");
  }
  const trimmed = text.trim();
  if (!trimmed) return [];
  let found;
  try {
    found = JSON.parse(trimmed.startsWith("[") ? trimmed : `[${trimmed.split(/[\s,;]+/).join(",")}]`);
  } catch {
    throw new Error(`“${trimmed.slice(0, 40)}” is no list of numbers`);
  }
  return found.flat(Infinity).map((each) => {
    if (datatype === "BOOL") return Boolean(each);
    if (typeof each !== "number") throw new Error(`“${String(each).slice(0, 40)}” is no number`);
    return each;
  });
}
