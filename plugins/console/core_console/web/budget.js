// The budget of memory: what models may take of each device, where the server has one.

import { bytes } from "./figures.js";
import { read } from "./server.js";
import { offers, store } from "./store.js";
import { t } from "./text.js";

const ROUTE = "control/model_memory.account";
const EVERY_MS = 3000;

/** Read `store.budget` and `store.account` every three seconds; return a function that ends it. */
export function followBudget() {
  if (!offers(`GET /${ROUTE}`)) return () => {};
  const look = async () => {
    try {
      take((await read(ROUTE)).result);
    } catch { /* the server has gone, or a worker is silent: the next look may succeed */ }
  };
  look();
  const timer = setInterval(look, EVERY_MS);
  return () => clearInterval(timer);
}

/** Take the result of the route: an entry for each process. */
function take(processes) {
  const budget = new Map();
  const account = new Map();
  for (const each of processes) {
    for (const [device, size] of Object.entries(each.budget)) {
      const [used, all] = budget.get(device) || [0, 0];
      budget.set(device, [used + (each.used[device] || 0), all + size]);
    }
    for (const { name, bytes: parts } of each.models) account.set(name, (account.get(name) || 0) + Object.values(parts).reduce((sum, size) => sum + size, 0));
  }
  Object.assign(store, { budget, account });
}

/** Return [text, whether little is left] for the tile of the memory, or null without a budget. */
export function budgetText() {
  const parts = [...store.budget].filter(([, [, all]]) => all > 0);
  if (!parts.length) return null;
  const text = parts.map(([device, [used, all]]) => t(device === "host" ? "models {used} of {all}" : "{device} {used} of {all}", { device, used: bytes(used), all: bytes(all) }));
  return [text.join(", "), parts.some(([, [used, all]]) => used > 0.9 * all)];
}
