// Advice: why a model is slow, from the parts of its latency. Each finding has a reason in numbers and a remedy.

import { count, duration, percent } from "./figures.js";
import { store } from "./store.js";
import { t } from "./text.js";

const WINDOW = 30; // seconds

/** Return the mean of the last values of a field, weighted by the requests of each second. */
export function recent(history, name, most = WINDOW) {
  if (!history.size) return NaN;
  const values = history.last(name, most);
  const weights = history.last("rate", most);
  let sum = 0;
  let total = 0;
  values.forEach((value, i) => {
    if (!Number.isFinite(value) || !(weights[i] > 0)) return;
    sum += value * weights[i];
    total += weights[i];
  });
  return total ? sum / total : NaN;
}

/** Return the mean latency by phase in milliseconds: of the last half minute, else since the load. */
export function phases({ row, history }) {
  const names = ["queue", "input", "infer", "output", "mean"];
  const now = Object.fromEntries(names.map((name) => [name, recent(history, name)]));
  const live = Number.isFinite(now.mean);
  const executed = row.ok - row.hits;
  const since = (name, requests) => (requests > 0 ? row[`${name}_ns`] / requests / 1e6 : NaN);
  const found = live ? now : { queue: since("queue", row.ok), input: since("input", executed), infer: since("infer", executed), output: since("output", executed), mean: since("total", row.ok) };
  const known = ["queue", "input", "infer", "output"].reduce((sum, name) => sum + (found[name] || 0), 0);
  return { ...found, other: Math.max(0, found.mean - known), live };
}

/** Return what a batcher could group: rows that arrive while a batch runs, in all instances. */
export function possible({ row, history }) {
  const rate = Math.max(0, recent(history, "rows"));
  const run = recent(history, "infer");
  const instances = Math.max(1, Object.keys(row.lanes || {}).length);
  const now = recent(history, "batch");
  if (!(rate > 0) || !Number.isFinite(run) || row.batch <= 1) return null;
  const arrive = (rate * run) / 1000 / instances;
  return { now, arrive, could: Math.max(1, Math.min(row.batch, Math.round(arrive))), instances, run };
}

/** Return the findings for a version: [{ kind, title, text }], the most important first. */
export function findings(version) {
  const { row, history } = version;
  const parts = phases(version);
  const found = [];
  if (!row.ok && !row.failed) return [{ kind: "", title: t("No request yet"), text: t("Send one with “Try it”, and see its time here.") }];
  if (row.ensemble) {
    return [{ kind: "", title: t("An ensemble waits for its steps"), text: t("Look at the graph for the slowest step, and open its model.") }];
  }
  const busy = mean(history.size ? history.last("busy", WINDOW) : []);
  const queued = parts.queue / parts.mean;
  const instances = Object.keys(row.lanes || {}).length;
  if (queued > 0.4 && parts.queue > 0.2) {
    const full = busy > 0.7;
    found.push({
      kind: "queue", title: t("Requests wait: {part} of the time is the queue", { part: percent(queued) }),
      text: full ? t("The {n} instances are busy {part} of the time. Add instances (instance_group), larger batches, or workers.", { n: instances, part: percent(busy) })
        : row.delay_us / 1000 > 0.3 * parts.queue ? t("The batcher waits up to {time} for more requests: lower max_queue_delay_microseconds.", { time: duration(row.delay_us / 1000) })
          : t("The instances are idle {part} of the time, and the batcher does not wait that long: the processor or the event loop is busy with other work (CPU {cpu}).", { part: percent(1 - (busy || 0)), cpu: percent(store.cpu) }),
    });
  }
  if (parts.infer / parts.mean > 0.5) {
    found.push({ kind: "infer", title: t("The model computes: {part} of the time is compute", { part: percent(parts.infer / parts.mean) }), text: t("{time} for each execution. A smaller or quantised model, another device or more threads for the backend shorten it.", { time: duration(parts.infer) }) });
  }
  if ((parts.input + parts.output) / parts.mean > 0.3 && parts.input + parts.output > 0.2) {
    found.push({ kind: "gather", title: t("Copies: {part} of the time is input and output", { part: percent((parts.input + parts.output) / parts.mean) }), text: t("Large tensors are gathered and divided. Ask for fewer outputs, use smaller types, or shared memory.") });
  }
  const chance = possible(version);
  if (chance && chance.could > 1.5 * chance.now && chance.could - chance.now >= 1) {
    found.push({ kind: "batch", title: t("Batches could be larger"), text: t("They have {now} rows, and about {could} arrive while one runs. Enable dynamic_batching, or raise max_queue_delay_microseconds.", { now: count(chance.now), could: count(chance.could) }) });
  }
  if (row.failed && row.failed / (row.ok + row.failed) > 0.01) {
    found.push({ kind: "bad", title: t("{part} of the requests fail", { part: percent(row.failed / (row.ok + row.failed)) }), text: Object.entries(row.failures).map(([reason, number]) => `${reason}: ${count(number)}`).join(", ") });
  }
  if (!found.length) found.push({ kind: "good", title: t("Nothing stands out"), text: t("No phase takes most of the time.") });
  return found;
}

function mean(values) {
  const known = values.filter(Number.isFinite);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : NaN;
}
