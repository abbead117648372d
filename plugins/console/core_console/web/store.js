// Store: the state of the server as the page knows it, from the events of console/stream.
//
// server ─► whole, delta ─► [Store] ─► listeners.  It connects again by itself when the server has gone.

import { History, pointOf } from "./history.js";
import { events, Refused, request } from "./server.js";
import { t } from "./text.js";

const RETRY_MS = [500, 1000, 2000, 4000];

export const store = {
  session: null,
  models: new Map(), // name → model
  servers: new Map(), // of a router: name → { row, history }
  router: null, // what the router counts itself, with its rates
  processes: [],
  at: 0, // milliseconds since 1970, of the last event
  status: "connecting", // or "live", "lost", "refused"
  trouble: "",
  noticed: 0,
  totals: new History(), // of all models together
  cpu: NaN,
  budget: new Map(), // device → [bytes that models take, bytes that they may take]
  account: new Map(), // model → bytes, where the server has a budget
};

/** Return whether the server has a route, such as "GET /v2/jobs", and this caller may ask it. */
export const offers = (route) => store.session.routes.includes(route);

/** Return whether the page is that of a router: it shows several servers. */
export const isRouter = () => offers("GET /servers");

const listeners = new Set();

/** Call a function after each event and each change of the status; return what stops it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of [...listeners]) listener();
}

let stopped = null;

/** Read events until `disconnect`. */
export function connect() {
  disconnect();
  const control = (stopped = new AbortController());
  run(control.signal);
}

/** Read no more events. */
export function disconnect() {
  stopped?.abort();
  stopped = null;
}

async function run(signal) {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const answer = await request("console/stream", { signal });
      for await (const [name, data] of events(answer)) {
        if (signal.aborted) return;
        attempt = 0;
        if (name === "refused") throw new Refused(401, JSON.parse(data).error);
        take(name, JSON.parse(data));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401 || error.status === 403) {
        store.status = "refused";
        store.trouble = error.message;
        tell();
        return;
      }
    }
    if (signal.aborted) return;
    store.status = "lost";
    tell();
    await new Promise((done) => setTimeout(done, RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]));
  }
}

/** Apply an event. Tests call it too. */
export function take(name, data) {
  const seconds = store.at ? Math.max(0.2, (data.at_ms - store.at) / 1000) : 1;
  store.status = "live";
  store.trouble = data.trouble || "";
  if (data.trouble) return tell();
  if (data.silent.length) store.trouble = t("worker {n} does not answer", { n: data.silent.join(", ") });
  if (name === "whole") forget(data.rows);
  if (data.router) for (const row of [...data.rows, ...data.servers]) row.bounds_us = data.router.bounds_us;
  const changed = new Set();
  for (const row of data.rows) {
    changed.add(update(row, data.at_ms, seconds, name === "whole"));
  }
  for (const [model, version] of data.gone || []) store.models.get(model)?.versions.delete(version);
  if (data.idle) setIdle(data.idle);
  for (const model of [...store.models.values()]) {
    if (!model.versions.size && !model.idle) store.models.delete(model.name);
  }
  if (name === "delta") rest(changed, data.at_ms);
  if (data.servers) fleet(data, seconds, name === "whole");
  server(data, seconds);
  store.at = data.at_ms;
  tell();
}

function forget(rows) {
  const known = new Set(rows.map((row) => `${row.model} ${row.version}`));
  for (const model of store.models.values()) {
    for (const number of model.versions.keys()) {
      if (!known.has(`${model.name} ${number}`)) model.versions.delete(number);
    }
  }
}

function modelOf(name) {
  if (!store.models.has(name)) store.models.set(name, { name, versions: new Map(), idle: false, reason: "" });
  return store.models.get(name);
}

function setIdle(idle) {
  for (const model of store.models.values()) model.idle = false;
  for (const { model: name, reason } of idle) {
    const model = modelOf(name);
    model.idle = true;
    model.reason = reason;
  }
}

function update(row, time, seconds, whole) {
  const model = modelOf(row.model);
  const known = model.versions.get(row.version);
  const version = known || { row, history: new History() };
  const before = version.row;
  // Counters that shrink are those of a version that was loaded again, or of a server that was started again.
  const again = row.ok === undefined || before.ok === undefined || row.ok < before.ok || row.runs < before.runs;
  if (known && !again && !whole) {
    version.history.add(pointOf(row, before, time, seconds, version.history));
    version.history.addLanes(row.lanes || {});
  }
  version.row = row;
  model.versions.set(row.version, version);
  return version;
}

/** Add a point without requests to each version that has not changed. */
function rest(changed, time) {
  for (const model of store.models.values()) {
    for (const version of model.versions.values()) {
      if (changed.has(version) || !version.history.size) continue;
      const { row, history } = version;
      history.add({ time, rate: 0, failed: 0, pending: row.pending, flight: row.flight, busy: 0, wait: 0, rows: 0, p50: row.quantiles_ms?.[0], p95: row.quantiles_ms?.[1], p99: row.quantiles_ms?.[2] });
      history.addLanes(Object.fromEntries(Object.keys(row.lanes || {}).map((name) => [name, [0, 0]])));
    }
  }
}

/** Take the rows of the servers behind a router, and what it counts itself. */
function fleet(data, seconds, whole) {
  const before = store.servers;
  store.servers = new Map(data.servers.map((row) => {
    const known = before.get(row.name) || { row, history: new History() };
    if (before.has(row.name) && !whole && row.ok >= known.row.ok) known.history.add(pointOf(row, known.row, data.at_ms, seconds, known.history));
    return [row.name, { row, history: known.history }];
  }));
  const { retries, hedges, refused } = data.router;
  const counts = { retried: Object.values(retries).reduce((sum, each) => sum + each, 0), copied: hedges?.sent || 0, refused };
  const rate = (name) => (store.router && !whole ? Math.max(0, counts[name] - store.router[name]) / seconds : NaN);
  store.router = { ...data.router, ...counts, retry_rate: rate("retried"), copy_rate: rate("copied") };
}

function server(data, seconds) {
  const before = new Map(store.processes.map((each) => [each.pid, each]));
  let used = 0;
  let known = 0;
  for (const each of data.processes) {
    const last = before.get(each.pid);
    each.cpu = NaN;
    if (last && each.at_s > last.at_s) {
      each.cpu = (each.cpu_s - last.cpu_s) / (each.at_s - last.at_s);
      used += each.cpu;
      known += 1;
    }
  }
  store.cpu = known ? used : NaN;
  store.processes = data.processes;
  store.noticed = data.noticed;
  let rate = 0;
  let failed = 0;
  let weighted = 0;
  let pending = 0;
  let flight = 0;
  // Also requests for no model count for a router: its servers have them.
  const parts = data.servers ? [...store.servers.values()] : [...store.models.values()].flatMap((model) => [...model.versions.values()]);
  for (const { row, history } of parts) {
    pending += row.pending || 0;
    flight += row.flight || 0;
    const now = history.now("rate");
    // Steps of an ensemble are requests of the server too, but not of a client.
    if (!(now >= 0)) continue;
    rate += now;
    failed += history.now("failed");
    if (now > 0) weighted += now * history.now("mean");
  }
  if (store.at) store.totals.add({ time: data.at_ms, rate, failed, mean: rate ? weighted / rate : NaN, pending, flight, busy: store.cpu });
}

// A version at rest, such as "unloaded: until a request", has not failed.
const atRest = (each) => each.row.state === "UNAVAILABLE" && /^unloaded(:|$)/.test(each.row.reason);

/** Return what a list shows of a model: its state, newest version and sums over its versions. */
export function summary(model) {
  const versions = [...model.versions.values()].sort((a, b) => b.row.version - a.row.version);
  const ready = versions.filter((each) => each.row.state === "READY");
  const main = ready[0] || versions[0] || null;
  const state = ready.length ? (ready.some((each) => each.row.serves === false) ? "UNAVAILABLE" : "READY") : main ? main.row.state : "UNLOADED";
  const unloaded = main && atRest(main);
  const failing = versions.find((each) => each.row.state === "UNAVAILABLE" && !atRest(each));
  const sum = (name) => ready.reduce((found, each) => found + (each.history.now(name) || 0), 0);
  return {
    state: unloaded ? "UNLOADED" : state,
    reason: state === "READY" && !failing ? "" : unloaded ? main.row.reason.replace(/^unloaded$/, "") : (failing || main)?.row.reason || model.reason,
    versions: ready.map((each) => each.row.version),
    main,
    rate: sum("rate"),
    failed: ready.reduce((found, each) => found + each.row.failed, 0),
    failing: sum("failed"),
    memory: store.account.get(model.name) || ready.reduce((found, each) => found + (each.row.memory || 0), 0),
    pending: ready.reduce((found, each) => found + each.row.pending, 0),
    latency: main ? latencyOf(main) : NaN,
  };
}

/** Return the latency of a version in milliseconds: p99 if known, else the mean of now, else since the load. */
export function latencyOf({ row, history }) {
  const p99 = history.now("p99");
  if (Number.isFinite(p99)) return p99;
  const means = history.last("mean", 30).filter(Number.isFinite);
  if (means.length) return means[means.length - 1];
  return row.ok ? row.total_ns / row.ok / 1e6 : NaN;
}
