// One inference over the v2 protocol, with tensors in binary form; and streams of generate_stream.

import { events, modelPath, request } from "./server.js";
import { decoded, encoded, isText } from "./tensors.js";

const LENGTH = "Inference-Header-Content-Length";

/** Return { outputs, ms }; outputs are { name, datatype, shape, values, classes }. Raises Refused. */
export async function infer(model, version, inputs, outputs, parameters) {
  const parts = inputs.map((each) => each.bytes || encoded(each.datatype, each.values));
  const head = {
    ...(Object.keys(parameters).length ? { parameters } : {}),
    inputs: inputs.map(({ name, datatype, shape }, i) => ({ name, datatype, shape, parameters: { binary_data_size: parts[i].length } })),
    outputs: outputs.map(({ name, parameters: own }) => ({ name, parameters: { ...own, binary_data: true } })),
  };
  const json = new TextEncoder().encode(JSON.stringify(head));
  const begun = performance.now();
  const answer = await request(`${modelPath(model, version)}/infer`, { method: "POST", body: new Blob([json, ...parts]), headers: { "Content-Type": "application/octet-stream", [LENGTH]: String(json.length) } });
  const body = new Uint8Array(await answer.arrayBuffer());
  const ms = performance.now() - begun;
  const size = Number(answer.headers.get(LENGTH) || body.length);
  const found = JSON.parse(new TextDecoder().decode(body.subarray(0, size)));
  let at = size;
  return { ms, outputs: (found.outputs || []).map((each) => {
    const length = each.parameters?.binary_data_size;
    const values = length === undefined ? each.data : decoded(each.datatype, body.subarray(at, (at += length)));
    const asked = outputs.find((other) => other.name === each.name);
    return { ...each, values, classes: asked?.parameters?.classification ? values.map(classOf) : null };
  }) };
}

function classOf(text) {
  const [value, index, ...label] = String(text).split(":");
  return { value: Number(value), index: Number(index), label: label.join(":") };
}

/** Yield [response, milliseconds since the request] of generate_stream. */
export async function* stream(model, version, inputs, parameters, signal) {
  const body = Object.fromEntries(inputs.map(({ name, datatype, values }) => {
    const list = Array.from(values, (each) => (isText(datatype) ? String(each) : each));
    return [name, list.length === 1 ? list[0] : list];
  }));
  if (Object.keys(parameters).length) body.parameters = parameters;
  const begun = performance.now();
  const answer = await request(`${modelPath(model, version)}/generate_stream`, { method: "POST", body: JSON.stringify(body), signal });
  for await (const [, data] of events(answer)) {
    const found = JSON.parse(data);
    if (found.error) throw new Error(found.error);
    yield [found, performance.now() - begun];
  }
}
