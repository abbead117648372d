// Starts Swagger UI with the description of the models that serve.
//
// The description may need a token. Without one the page shows what is missing, and the button Authorize takes
// it; the page then asks again. A token is kept only as long as the page is open.
"use strict";

const server = new URL(".", window.location.href).href.replace(/\/$/, "");
const credentials = new Map(); // name of a security scheme → header and value

function stub(text, securitySchemes) {
  return {
    openapi: "3.1.0",
    info: { title: "Models of this server", version: "", description: text },
    paths: {},
    components: { securitySchemes },
  };
}

// What to enter where the server refuses the description.
function missing(status, text) {
  const header = /expecting header '([^']+)'/.exec(text);
  if (header) return { [header[1]]: { type: "apiKey", in: "header", name: header[1] } };
  if (status === 401 || status === 403) return { token: { type: "http", scheme: "bearer" } };
  return {};
}

async function description() {
  const headers = Object.fromEntries(credentials.values());
  try {
    const response = await fetch(`${server}/docs/openapi.json`, { headers, cache: "no-store" });
    const found = await response.json();
    if (response.ok) return { ...found, servers: [{ url: server }] };
    return stub(`${response.status}: ${found.error}`, missing(response.status, found.error));
  } catch (error) {
    return stub(`The server does not answer: ${error.message}`, {});
  }
}

async function show(system) {
  const found = await description();
  system.specActions.updateSpec(JSON.stringify(found));
}

function headerOf(given) {
  const schema = given.schema.toJS ? given.schema.toJS() : given.schema;
  return schema.type === "http" ? ["Authorization", `Bearer ${given.value}`] : [schema.name, given.value];
}

const asksAgain = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: (original, system) => (given) => {
          for (const [name, one] of Object.entries(given)) credentials.set(name, headerOf(one));
          const done = original(given);
          show(system);
          return done;
        },
        logout: (original, system) => (names) => {
          for (const name of names) credentials.delete(name);
          const done = original(names);
          show(system);
          return done;
        },
      },
    },
  },
});

const ui = SwaggerUIBundle({
  dom_id: "#page",
  spec: stub("", {}),
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [asksAgain],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
window.ui = ui;
show(ui.getSystem());
