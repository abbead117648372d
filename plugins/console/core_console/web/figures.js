// Numbers as people read them: three digits and a unit.

const digits = new Map();

function fixed(value, most) {
  if (!digits.has(most)) digits.set(most, new Intl.NumberFormat("en", { maximumFractionDigits: most, minimumFractionDigits: 0 }));
  return digits.get(most).format(value);
}

function three(value) {
  const size = Math.abs(value);
  return fixed(value, size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** A rate or a count: 0, 0.5, 12.3, 1.2 k. */
export function count(value) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e9) return `${three(value / 1e9)} G`;
  if (Math.abs(value) >= 1e6) return `${three(value / 1e6)} M`;
  if (Math.abs(value) >= 1e4) return `${three(value / 1e3)} k`;
  return three(Math.abs(value) < 0.0005 ? 0 : value);
}

/** A duration in milliseconds, with the unit that fits: 850 µs, 12.3 ms, 1.4 s. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms >= 60000) return `${three(ms / 60000)} min`;
  if (ms >= 1000) return `${three(ms / 1000)} s`;
  if (ms >= 1) return `${three(ms)} ms`;
  return ms === 0 ? "0 ms" : `${fixed(ms * 1000, ms >= 0.1 ? 0 : 1)} µs`;
}

/** A size in bytes: 12 KiB, 1.4 GiB. */
export function bytes(value) {
  if (!Number.isFinite(value) || value < 0) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${three(value)} ${units[at]}`;
}

/** A part as a percentage. */
export function percent(part) {
  if (!Number.isFinite(part)) return "–";
  const value = part * 100;
  return `${fixed(value, value > 0 && value < 10 ? 1 : 0)} %`;
}

/** The time of day of milliseconds since 1970. */
export function clock(ms) {
  const date = new Date(ms);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The time of day, with month and day if that is not today. */
export function moment(ms) {
  const date = new Date(ms);
  if (date.toDateString() === new Date().toDateString()) return clock(ms);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(ms)}`;
}
