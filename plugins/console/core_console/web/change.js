// The tab "Change": what may change while the model serves, its live settings and its traffic by version.

import { fill, h } from "./dom.js";
import { liveSettings } from "./live_settings.js";
import { offers } from "./store.js";
import { traffic } from "./traffic.js";

const SETTINGS = "GET /v2/models/{model}/settings";
const TRAFFIC = "GET /v2/models/{model}/traffic";

/** Show the tab. */
export function change(panel, name) {
  const parts = [];
  const places = [];
  for (const [route, draw] of [[TRAFFIC, traffic], [SETTINGS, liveSettings]]) {
    if (!offers(route)) continue;
    const place = h("div", { class: "stack" });
    places.push(place);
    parts.push(draw(place, name));
  }
  fill(panel, places);
  return { close: () => parts.forEach((each) => each.close()) };
}
