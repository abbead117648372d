// Commands that send the request of the form: curl, tritonclient, grpcurl.

import { modelPath } from "./server.js";
import { isText, nested } from "./tensors.js";

const MOST = 400; // values that a command lists

const CONTENTS = { BOOL: "bool_contents", INT8: "int_contents", INT16: "int_contents", INT32: "int_contents", INT64: "int64_contents", UINT8: "uint_contents", UINT16: "uint_contents", UINT32: "uint_contents", UINT64: "uint64_contents", FP32: "fp32_contents", FP64: "fp64_contents", BYTES: "bytes_contents" };

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Return [[title, text]].
 *
 * version   "" for the newest
 * inputs    { name, datatype, shape, values, size }; size is that of the bytes
 * stream    whether the model is decoupled
 * grpc      host and port, "" for none
 * clients   address of the port for clients
 */
export function snippets({ model, version = "", inputs, parameters, outputs, stream, token, grpc, clients = document.baseURI }) {
  inputs = inputs.map((each) => (each.datatype === "FP32" && each.values?.length <= MOST ? { ...each, values: Array.from(each.values, (value) => Number(Number(value).toPrecision(7))) } : each));
  const short = inputs.every((each) => each.values && each.values.length <= MOST && !(each.values[0] instanceof Uint8Array));
  const auth = token ? ' -H "Authorization: Bearer $TOKEN"' : "";
  const found = [];
  const url = new URL(modelPath(model, version), clients).href;
  const extra = Object.keys(parameters).length ? { parameters } : {};
  const asked = outputs.some((each) => each.parameters) ? { outputs } : {};
  if (short && stream) {
    const body = Object.fromEntries(inputs.map((each) => [each.name, each.values.length === 1 ? each.values[0] : Array.from(each.values)]));
    found.push(["curl", `curl -sN${auth} ${quoted(`${url}/generate_stream`)} \\\n  -d ${quoted(JSON.stringify({ ...body, ...extra }))}`]);
  } else if (short) {
    const body = { ...extra, inputs: inputs.map(({ name, datatype, shape, values }) => ({ name, datatype, shape, data: Array.from(values) })), ...asked };
    found.push(["curl", `curl -s${auth} ${quoted(`${url}/infer`)} \\\n  -d ${quoted(JSON.stringify(body))}`]);
  } else {
    found.push(["curl", `# The values are too many for a command: ${inputs.map((each) => `${each.name}.bin`).join(", ")} holds the bytes.\n` + binaryCurl(`${url}/infer`, auth, inputs, extra, asked)]);
  }
  found.push(["tritonclient", python(model, version, inputs, outputs, parameters, token, short, new URL(clients))]);
  if (grpc && short && inputs.every((each) => CONTENTS[each.datatype]) && Object.values(parameters).every(isScalar)) {
    const message = { model_name: model, ...(version ? { model_version: String(version) } : {}), ...messages(extra), ...(asked.outputs ? { outputs: outputs.map((each) => ({ name: each.name, ...messages(each) })) } : {}), inputs: inputs.map(({ name, datatype, shape, values }) => ({ name, datatype, shape, contents: { [CONTENTS[datatype]]: isText(datatype) ? Array.from(values, base64) : Array.from(values) } })) };
    found.push(["grpcurl", `P=$(python -c "import core, frontends.grpc as g; print(*('-import-path ' + p + d for m, d in ((g, '/protocol'), (core, '/config')) for p in m.__path__))")\ngrpcurl -plaintext $P -proto grpc_service.proto${token ? ' -H "authorization: Bearer $TOKEN"' : ""} \\\n  -d ${quoted(JSON.stringify(message))} \\\n  ${grpc} inference.GRPCInferenceService/${stream ? "ModelStreamInfer" : "ModelInfer"}`]);
  }
  return found;
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

const isScalar = (value) => ["string", "number", "boolean"].includes(typeof value);

/** Return { parameters } in the form of a gRPC message, or nothing. */
function messages({ parameters }) {
  const kind = (value) => (typeof value === "string" ? "stringParam" : typeof value === "boolean" ? "boolParam" : Number.isSafeInteger(value) ? "int64Param" : "doubleParam");
  return parameters ? { parameters: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, { [kind(value)]: value }])) } : {};
}

function binaryCurl(url, auth, inputs, extra, asked) {
  const head = JSON.stringify({ ...extra, ...asked, inputs: inputs.map(({ name, datatype, shape, size }) => ({ name, datatype, shape, parameters: { binary_data_size: size } })) });
  return `(printf %s ${quoted(head)}; cat ${inputs.map((each) => quoted(`${each.name}.bin`)).join(" ")}) |\n  curl -s${auth} ${quoted(url)} \\\n  -H 'Inference-Header-Content-Length: ${new TextEncoder().encode(head).length}' --data-binary @-`;
}

const NUMPY = { BOOL: "bool", INT8: "int8", INT16: "int16", INT32: "int32", INT64: "int64", UINT8: "uint8", UINT16: "uint16", UINT32: "uint32", UINT64: "uint64", FP16: "float16", FP32: "float32", FP64: "float64", BYTES: "object" };

// Parameters that are arguments of `infer`: the client refuses them among the others.
const ARGUMENTS = ["sequence_id", "sequence_start", "sequence_end", "priority", "timeout"];

/** Return a value of JSON as Python writes it. */
function literal(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${literal(each)}`).join(", ")}}`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function python(model, version, inputs, outputs, parameters, token, short, { host, protocol }) {
  const value = ({ name, datatype, shape, values }) => (short ? `np.array(${literal(nested(values, shape))}, dtype="${NUMPY[datatype] || "float32"}")` : `np.fromfile(${JSON.stringify(`${name}.bin`)}, dtype="${NUMPY[datatype] || "float32"}").reshape(${JSON.stringify(shape)})`);
  const lines = ["import numpy as np", "import tritonclient.http as client", "", `server = client.InferenceServerClient(${JSON.stringify(host)}${protocol === "https:" ? ", ssl=True" : ""})`, "inputs = []"];
  for (const each of inputs) {
    lines.push(`value = ${value(each)}`, `inputs.append(client.InferInput(${JSON.stringify(each.name)}, list(value.shape), ${JSON.stringify(each.datatype)}))`, "inputs[-1].set_data_from_numpy(value)");
  }
  const asked = outputs.map((each) => `client.InferRequestedOutput(${JSON.stringify(each.name)}${each.parameters?.classification ? `, class_count=${each.parameters.classification}` : ""})`);
  const own = Object.entries(parameters).filter(([name]) => ARGUMENTS.includes(name));
  const others = Object.entries(parameters).filter(([name]) => !ARGUMENTS.includes(name));
  const more = [...(version ? [["model_version", String(version)]] : []), ...own, ...(others.length ? [["parameters", Object.fromEntries(others)]] : [])].map(([name, each]) => `, ${name}=${literal(each)}`).join("");
  lines.push(`outputs = [${asked.join(", ")}]`, `answer = server.infer(${JSON.stringify(model)}, inputs, outputs=outputs${more}${token ? ', headers={"Authorization": f"Bearer {token}"}' : ""})`);
  for (const each of outputs) lines.push(`print(answer.as_numpy(${JSON.stringify(each.name)}))`);
  return lines.join("\n");
}
