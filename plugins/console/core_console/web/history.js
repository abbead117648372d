// History: what a model version did in each second, for the last fifteen minutes that the page was open.

export const LENGTH = 900;

const FIELDS = ["time", "rate", "failed", "mean", "p50", "p95", "p99", "queue", "input", "infer", "output", "batch", "pending", "flight", "busy", "wait", "rows"];

/** Points of one version in a ring. Latencies are in milliseconds, NaN for a second without a request. */
export class History {
  constructor() {
    this.size = 0;
    this.next = 0;
    this.rings = null;
    this.lanes = new Map(); // name of an instance → busy parts of the last minute
    this.buckets = []; // counts of the latency histogram, of the last half minute
  }

  /** Add a point: field → value. The first one takes the memory: idle models need none. */
  add(point) {
    if (this.rings === null) {
      this.rings = Object.fromEntries(FIELDS.map((name) => [name, new Float64Array(LENGTH).fill(NaN)]));
    }
    for (const name of FIELDS) this.rings[name][this.next] = point[name] ?? NaN;
    this.next = (this.next + 1) % LENGTH;
    this.size = Math.min(this.size + 1, LENGTH);
  }

  /** Return the last `most` values of a field, the oldest first. */
  last(name, most) {
    const count = Math.min(this.size, most);
    const found = new Array(count);
    for (let i = 0; i < count; i += 1) found[i] = this.rings[name][(this.next - count + i + LENGTH) % LENGTH];
    return found;
  }

  /** Return the latest value of a field, NaN without a point. */
  now(name) {
    return this.size ? this.rings[name][(this.next - 1 + LENGTH) % LENGTH] : NaN;
  }

  /** Add what the instances did in the last second: name → [batches, busy part]. */
  addLanes(lanes) {
    for (const [name, [, busy]] of Object.entries(lanes)) {
      if (!this.lanes.has(name)) this.lanes.set(name, []);
      const parts = this.lanes.get(name);
      parts.push(busy);
      if (parts.length > 60) parts.shift();
    }
    for (const name of this.lanes.keys()) if (!(name in lanes)) this.lanes.delete(name);
  }
}

/** Return the point between two rows of a version that lie `seconds` apart. */
export function pointOf(row, before, time, seconds, history) {
  const ok = row.ok - before.ok;
  const runs = row.runs - before.runs;
  const rows = sizesOf(row) - sizesOf(before);
  const executed = ok - (row.hits - before.hits);
  const mean = (name, requests) => (requests > 0 ? (row[name] - before[name]) / requests / 1e6 : NaN);
  const instances = Object.keys(row.lanes || {}).length;
  const [p50, p95, p99] = quantiles(row, history);
  return {
    time,
    rate: ok / seconds,
    failed: (row.failed - before.failed) / seconds,
    mean: mean("total_ns", ok),
    p50, p95, p99,
    queue: mean("queue_ns", ok),
    input: mean("input_ns", executed),
    infer: mean("infer_ns", executed),
    output: mean("output_ns", executed),
    batch: runs > 0 ? rows / runs : NaN,
    rows: rows / seconds,
    pending: row.pending,
    flight: row.flight,
    busy: instances ? Math.min(1, (row.busy_ns - before.busy_ns) / 1e9 / seconds / instances) : NaN,
    wait: row.wait_s * 1000,
  };
}

/** Return the rows of all executions so far. */
export function sizesOf(row) {
  let found = 0;
  for (const [size, number] of Object.entries(row.batches || {})) found += size * number;
  return found;
}

const QUANTILES = [0.5, 0.95, 0.99];

function quantiles(row, history) {
  if (row.quantiles_ms) return row.quantiles_ms;
  if (!row.buckets) return [NaN, NaN, NaN];
  history.buckets.push(row.buckets);
  if (history.buckets.length > 30) history.buckets.shift();
  const first = history.buckets[0];
  return ofBuckets(row.bounds_us, row.buckets.map((value, i) => value - first[i]));
}

/** Return p50, p95 and p99 in milliseconds from the counts of buckets with upper bounds in microseconds. */
export function ofBuckets(bounds, counts) {
  const total = counts.reduce((sum, value) => sum + value, 0);
  if (!total) return [NaN, NaN, NaN];
  return QUANTILES.map((quantile) => {
    let below = 0;
    for (let i = 0; i < counts.length; i += 1) {
      if (below + counts[i] >= quantile * total) {
        const low = i ? bounds[i - 1] : 0;
        const high = i < bounds.length ? bounds[i] : low;
        return (low + (high - low) * ((quantile * total - below) / (counts[i] || 1))) / 1000;
      }
      below += counts[i];
    }
    return NaN;
  });
}
