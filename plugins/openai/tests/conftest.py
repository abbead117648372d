"""A server with text models of several kinds, reached over its HTTP port."""

import http.client
import json
import threading

import numpy as np
import pytest

import core

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401

from . import served_engines

CHATML = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ENGINE = {
    "task": "generate",
    "context": 512,
    "template": CHATML,
    "bos": "<s>",
    "eos": "</s>",
    "supports": ["temperature", "seed", "logprobs", "schema", "choices", "tokens", "adapter"],
    "adapters": ["pirate"],
}
TOP = [{"token": 9, "text": "uno", "logprob": -2.0}]
RETURNS = (
    "return_finish_reason",
    "return_logprobs",
    "return_cumulative_logprob",
    "return_num_input_tokens",
    "return_num_output_tokens",
)
WITH_SAMPLING = {
    "text_input": ("BYTES", [1]),
    "prompt_token_ids": ("INT32", [-1]),
    "image": ("BYTES", [-1]),
    "stream": ("BOOL", [1]),
    "sampling_parameters": ("BYTES", [1]),
    "exclude_input_in_output": ("BOOL", [1]),
    **{name: ("BOOL", [1]) for name in RETURNS},
}
OUTPUTS = {
    "text_output": ("BYTES", [1]),
    "finish_reason": ("BYTES", [1]),
    "cumulative_logprob": ("FP32", [1]),
    "logprobs": ("BYTES", [1]),
    "num_input_tokens": ("UINT32", [1]),
    "num_output_tokens": ("UINT32", [1]),
}


def texts(*values):
    return np.array([v if isinstance(v, bytes) else v.encode() for v in values], object)


class Models:
    """The functions that are models, and what they saw."""

    def __init__(self):
        self.seen = []  # the inputs of each call
        self.gate = threading.Event()
        self.gate.set()
        self.ended = threading.Event()  # a generator was closed, or has run to its end

    def words(self, text_input):
        """Send the words of the prompt back, each in its own response."""
        self.seen.append(text_input[0])
        try:
            for word in text_input[0].split():
                yield {"text_output": texts(word + b" ")}
                self.gate.wait(10)
        finally:
            self.ended.set()

    def cut(self, prompt):
        """Send a text whose responses cut its characters; the names are of no protocol."""
        for at in range(len(prompt[0])):
            yield {"answer": texts(prompt[0][at : at + 1])}

    def endless(self, text_input):
        try:
            while True:
                yield {"text_output": texts("x")}
        finally:
            self.ended.set()

    def broken(self, text_input):
        if text_input[0] == b"late":
            yield {"text_output": texts("begun")}
            self.gate.wait(10)
        raise core.CoreError(core.errors.Kind.UNAVAILABLE, "the model has no more text")

    def engine(
        self,
        text_input=None,
        prompt_token_ids=None,
        image=None,
        stream=None,
        sampling_parameters=None,
        exclude_input_in_output=None,
        return_finish_reason=None,
        return_logprobs=None,
        return_cumulative_logprob=None,
        return_num_input_tokens=None,
        return_num_output_tokens=None,
    ):
        """Answer as an engine: three words, the first of which is the seed; or a structure."""
        given = {name: value for name, value in locals().items() if name != "self"}
        given = {name: value for name, value in given.items() if value is not None}
        self.seen.append({name: value.tolist() for name, value in given.items()})
        sampling = (
            json.loads(given["sampling_parameters"][0]) if "sampling_parameters" in given else {}
        )
        words = ["one ", "two ", "three"]
        if "seed" in sampling:
            words[0] = f"{sampling['seed']} "
        if outputs := sampling.get("structured_outputs"):
            outputs = json.loads(outputs) if isinstance(outputs, str) else outputs
            words = [outputs["choice"][0]] if "choice" in outputs else ['{"a"', ": 1}"]
        most = sampling.get("max_tokens", len(words))
        words, finish = words[:most], "length" if most < len(words) else "stop"
        stream = "stream" in given and bool(given["stream"][0])
        groups = [[word] for word in words] if stream else [words]
        for at, group in enumerate(groups):
            last = at == len(groups) - 1
            entries = [
                {"token": 1, "text": word, "logprob": -0.5, "top": TOP[: sampling.get("logprobs")]}
                for word in group
            ]
            # A function returns all its outputs.
            yield {
                "text_output": texts("".join(group)),
                "finish_reason": texts(finish if last else "None"),
                "cumulative_logprob": np.array([-1.0 / (1 + sampling.get("seed", 0))], np.float32),
                "logprobs": texts(json.dumps(entries) if "return_logprobs" in given else "null"),
                "num_input_tokens": np.array([7], np.uint32),
                "num_output_tokens": np.array([len(group)], np.uint32),
            }


@pytest.fixture
def models():
    return Models()


@pytest.fixture
def open_server(models):
    """Serve the models with options; yields an address."""
    servers = []

    def opened(**options):
        server = core.Server(**options)
        server.start()
        servers.append(server)
        text = {
            "inputs": {"text_input": ("BYTES", [1])},
            "outputs": {"text_output": ("BYTES", [1])},
        }
        for name in ("words", "endless", "broken"):
            server.bind(name, getattr(models, name), **text)
        server.bind(
            "cut",
            models.cut,
            inputs={"prompt": ("BYTES", [1])},
            outputs={"answer": ("BYTES", [1])},
        )
        parameters = {"engine": {"string_value": json.dumps(ENGINE)}}
        for name, config in (("engine", {"parameters": parameters}), ("vllm", {})):
            server.bind(name, models.engine, inputs=WITH_SAMPLING, outputs=OUTPUTS, config=config)
        return server, server.serve(http_port=0)["http"]

    yield opened
    models.gate.set()
    for server in servers:
        server.stop()


class Client:
    """Sends JSON, and reads events."""

    def __init__(self, port):
        self.port = port

    def ask(self, path, body=None, headers=None, method=None):
        connection = self.begin(path, body, headers, method)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data else None

    def begin(self, path, body=None, headers=None, method=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        data = None if body is None else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, data, headers or {})
        return connection

    def events(self, path, body):
        connection = self.begin(path, {**body, "stream": True})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        found = [each for each in answer.read().decode().split("\n\n") if each]
        connection.close()
        assert all(each.startswith("data: ") for each in found)
        return [each[6:] for each in found]

    def chunks(self, path, body):
        *found, last = self.events(path, body)
        assert last == "[DONE]"
        return [json.loads(each) for each in found]


@pytest.fixture
def client(open_server):
    return Client(open_server()[1])


@pytest.fixture
def connect():
    """Return a client of a port."""
    return Client


CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": [2, "ä"]}}\n</tool_call>'
TOOL_TEMPLATE = (
    "{% for t in tools or [] %}<tools>{{ t | tojson }}</tools>{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<tool_call>"
)


def letters_config(**parameters):
    written = "".join(
        f'parameters {{ key: "{name}" value {{ string_value: {json.dumps(value)} }} }}\n'
        for name, value in parameters.items()
    )
    return f'backend: "letters"\n{written}'


LOOPING = (
    "{% if 'long' in messages[0].content|string %}{% for a in range(400) %}"
    "{% for b in range(400) %}{% endfor %}{% endfor %}{% endif %}"
)
LETTERS = {
    "letters": letters_config(adapters="loud", context="1024"),
    "poem": letters_config(text="one two STOP three"),
    "caller": letters_config(text=f"Let me see. {CALL}", template=TOOL_TEMPLATE),
    "callers": letters_config(text=f"{CALL}\n{CALL}", template=TOOL_TEMPLATE),
    "thinker": letters_config(
        text="<think>hm</think>yes", template=TOOL_TEMPLATE + "{# <think> #}"
    ),
    "reasoner": letters_config(text="hm</think>yes", template=TOOL_TEMPLATE + "<think>{{ '\n' }}"),
    "pictures": letters_config(
        text="a cat",
        template="{% for m in messages %}{% for p in m.content %}{{ p.text or p.type }}{% endfor %}"
        "{% endfor %}",
    ),
    "loops": letters_config(
        text="yes",
        template=LOOPING,
    ),
    "budget": letters_config(text="yes", template="{{ thinking_budget }}"),
    "vectors": letters_config(task="embed"),
    "ranked": letters_config()
    + "dynamic_batching { priority_levels: 2 default_priority_level: 2 }",
    "scores": letters_config(task="rank"),
    "forever": letters_config(context="100000000"),
    "single": letters_config(context="100000000", most="1", delay_ms="1"),
}


@pytest.fixture
def letters(open_server, tmp_path):
    """Serve models of the engine letters; return the server and its port."""
    pytest.importorskip("backend_testing.letters")
    for name, text in LETTERS.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(text)
    return open_server(model_repository=[str(tmp_path)])


@pytest.fixture(scope="session", params=served_engines.ENGINES)
def served(request, tmp_path_factory):
    """A model of each engine behind the routes. Engines load slowly: each is loaded once for all tests."""
    with served_engines.serve(request.param, tmp_path_factory.mktemp("models")) as found:
        yield found
