"""A folder of Triton's vLLM backend with SmolLM2: the v2 protocol, OpenAI's routes, adapters, metrics.

The last test kills vLLM.
"""

import asyncio
import json
import os
import re
import signal
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
from lora_files import write_adapter

import core

openai = pytest.importorskip("openai", reason="its client calls the server")
pytest.importorskip("frontend_openai", reason="it has the routes")

ARGUMENTS = {
    "model": "smollm2",
    "gpu_memory_utilization": 0.3,
    "enforce_eager": True,
    "max_model_len": 512,
    "max_num_seqs": 8,
    "kv_cache_memory_bytes": 2**29,
    "enable_lora": "true",
    "max_lora_rank": 8,
}
# As in the samples of Triton's vLLM backend.
CONFIG = """
backend: "vllm"
instance_group [
  {
    count: 1
    kind: KIND_MODEL
  }
]
parameters: {
  key: "REPORT_CUSTOM_METRICS"
  value: { string_value: "true" }
}
parameters: {
  key: "ENABLE_VLLM_HEALTH_CHECK"
  value: { string_value: "true" }
}
"""
QUESTION = [{"role": "user", "content": "Name the capital of France."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Running:
    """A server with the model `chat`.

    server   the core.Server
    port, metrics_port   of HTTP, and of the metrics
    sdk      a client of openai
    """

    def __init__(self, server, sdk, port, metrics_port):
        self.server, self.sdk, self.port, self.metrics_port = server, sdk, port, metrics_port

    def post(self, path, **document):
        """Return status and body of an answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(document).encode()
        )
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def status(self, path):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}").status
        except urllib.error.HTTPError as error:
            return error.code

    def chat(self, model="chat", **fields):
        found = self.sdk.chat.completions.create(
            **{"model": model, "messages": QUESTION, "temperature": 0, "max_tokens": 12, **fields}
        )
        return found.choices[0]


@pytest.fixture(scope="module")
def running(smollm2, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    version = repository / "chat" / "1"
    version.mkdir(parents=True)
    (version / "smollm2").symlink_to(smollm2, target_is_directory=True)
    (version / "model.json").write_text(json.dumps(ARGUMENTS))
    write_adapter(version / "noise", 0.5)
    write_adapter(version / "none", 0.0)
    adapters = {"noise": "noise", "none": "none"}
    (version / "multi_lora.json").write_text(json.dumps(adapters))
    (repository / "chat" / "config.pbtxt").write_text(CONFIG)
    with ExitStack() as stack:
        server = stack.enter_context(
            core.Server(model_repository=[str(repository)], model_control_mode="explicit")
        )
        server.start()
        server.load("chat")
        ports = server.serve(http_port=0, metrics_port=0)
        port = ports["http"]
        sdk = stack.enter_context(
            openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", timeout=300)
        )
        yield Running(server, sdk, port, ports["metrics"])


# the v2 protocol -------------------------------------------------------------------


def test_the_request_of_tritons_documentation_is_answered(running):
    status, body = running.post(
        "/v2/models/chat/generate",
        text_input="The capital of France is",
        parameters={"stream": False, "temperature": 0, "max_tokens": 8},
    )

    assert status == 200
    assert json.loads(body)["text_output"].startswith("The capital of France is Paris")


def test_a_stream_has_the_text_in_pieces(running):
    sampling = json.dumps({"temperature": 0, "max_tokens": 12})
    asked = {"text_input": "The capital of France is", "sampling_parameters": sampling}
    _, whole = running.post("/v2/models/chat/generate", **asked, exclude_input_in_output=True)

    status, body = running.post(
        "/v2/models/chat/generate_stream", **asked, stream=True, return_finish_reason=True
    )

    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    assert status == 200
    assert len(events) > 3
    assert "".join(each["text_output"] for each in events) == json.loads(whole)["text_output"]
    assert [each["finish_reason"] for each in events[-2:]] == ["None", "length"]


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        ({"logprobs": 21}, "logprobs"),
        ({"temperature": 2.5}, "temperature"),
        ({"stop_token_ids": [10**6]}, "stop_token_ids"),
        ({"logit_bias": {"1000000": 1}}, "logit_bias"),
        ({"suffix": "x"}, "suffix"),
        ({"structured_outputs": {"grammar": "root ::= ("}}, "rammar"),
        (
            {"lora_name": "french"},
            "the LoRA adapter 'french' is unknown, the model has noise, none",
        ),
    ],
)
def test_what_vllm_cannot_do_is_refused_with_the_name_of_the_field(running, sampling, said):
    status, body = running.post(
        "/v2/models/chat/generate", text_input="a", sampling_parameters=json.dumps(sampling)
    )

    assert status == 400, body
    assert said in json.loads(body)["error"]


def test_a_token_outside_the_vocabulary_is_refused(running):
    status, body = running.post("/v2/models/chat/generate", prompt_token_ids=[10**6])

    assert (status, "the token 1000000 is outside of the vocabulary" in body) == (400, True)


# OpenAI's routes ----------------------------------------------------------------------


def test_a_chat_is_answered_with_its_usage(running):
    found = running.sdk.chat.completions.create(
        model="chat", messages=QUESTION, temperature=0, max_tokens=12
    )

    assert "Paris" in found.choices[0].message.content
    assert found.usage.prompt_tokens > 5
    assert 0 < found.usage.completion_tokens <= 16


def test_a_stream_has_the_same_text(running):
    expected = running.chat().message.content

    events = running.sdk.chat.completions.create(
        model="chat", messages=QUESTION, temperature=0, max_tokens=12, stream=True
    )

    pieces = [each.choices[0].delta.content or "" for each in events]
    assert "".join(pieces) == expected
    assert len([each for each in pieces if each]) > 1


def test_many_asynchronous_chats_run_at_once(running):
    async def ask():
        url = f"http://127.0.0.1:{running.port}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="none", timeout=300) as client:
            return await asyncio.gather(
                *[
                    client.chat.completions.create(
                        model="chat", messages=QUESTION, temperature=0, max_tokens=12
                    )
                    for _ in range(10)  # more than vLLM runs at once
                ]
            )

    found = asyncio.run(ask())

    assert all("Paris" in each.choices[0].message.content for each in found)


def test_log_probabilities_are_those_of_the_tokens(running):
    found = running.chat(logprobs=True, top_logprobs=2)

    entries = found.logprobs.content
    tokens = "".join(each.token for each in entries)
    assert tokens.removesuffix("<|im_end|>") == found.message.content
    assert all(each.logprob <= 0 and len(each.top_logprobs) == 2 for each in entries)
    assert all(each.top_logprobs[0].token == each.token for each in entries)  # temperature 0


def test_a_seed_repeats_a_text_and_stop_ends_it(running):
    def text(**fields):
        return running.chat(temperature=1.5, max_tokens=8, **fields).message.content

    assert text(seed=7) == text(seed=7)
    assert len({text(seed=seed) for seed in range(3)}) > 1
    plain = running.chat().message.content
    assert running.chat(stop=["Paris"]).message.content == plain.partition("Paris")[0]


@pytest.mark.parametrize(
    ("structure", "pattern"),
    [
        ({"regex": "[0-9]{2}/[0-9]{2}"}, r"\d\d/\d\d"),
        ({"choice": ["yes", "no"]}, "yes|no"),
        ({"grammar": 'root ::= "a" | "bc"'}, "a|bc"),
    ],
)
def test_a_structure_is_kept(running, structure, pattern):
    found = running.chat(extra_body={"structured_outputs": structure}, max_tokens=32)

    assert re.fullmatch(pattern, found.message.content)


def test_a_schema_is_kept(running):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"enum": [1, 2]}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}

    found = running.chat(response_format=wanted, max_tokens=100, temperature=1.0, seed=3)

    document = json.loads(found.message.content)
    assert set(document) == {"name", "age"} and document["age"] in (1, 2)


def test_the_error_of_a_schema_that_cannot_be_compiled_names_its_field(running):
    schema = {"type": "string", "pattern": "["}
    wanted = {"type": "json_schema", "json_schema": {"name": "text", "schema": schema}}
    messages = [{"role": "user", "content": "a"}]

    status, body = running.post(
        "/v1/chat/completions", model="chat", messages=messages, response_format=wanted
    )

    assert (status, json.loads(body)["error"]["param"]) == (400, "response_format"), body


def test_a_tool_is_called(running):
    wanted = {"type": "function", "function": {"name": "weather"}}

    found = running.chat(tools=[WEATHER], tool_choice=wanted, max_tokens=100)

    (call,) = found.message.tool_calls
    assert call.function.name == "weather"
    assert set(json.loads(call.function.arguments)) == {"city"}


def test_an_adapter_is_chosen_by_the_name_of_the_model(running):
    plain = running.chat().message.content

    assert running.chat("chat:none").message.content == plain
    assert running.chat("chat:noise").message.content != plain
    assert running.chat().message.content == plain
    assert [each.id for each in running.sdk.models.list()] == ["chat", "chat:noise", "chat:none"]
    with pytest.raises(openai.NotFoundError):
        running.chat("chat:french")


def test_a_client_that_leaves_ends_its_request_in_vllm(running):
    events = running.sdk.chat.completions.create(
        model="chat",
        messages=QUESTION,
        max_tokens=400,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    next(iter(events))
    assert metric(running, "vllm:num_requests_running{") == 1

    events.close()

    assert settles(lambda: metric(running, "vllm:num_requests_running{") == 0)
    assert metric(running, "core_generation_running{") == 0
    before = metric(running, "vllm:generation_tokens_total{")
    time.sleep(1)
    assert metric(running, "vllm:generation_tokens_total{") == before


# operation --------------------------------------------------------------------------------


def metric(running, name, part=""):
    """Return the sum of the samples whose lines begin with `name` and contain `part`."""
    url = f"http://127.0.0.1:{running.metrics_port}/metrics"
    lines = urllib.request.urlopen(url).read().decode().splitlines()
    found = [each for each in lines if each.startswith(name) and part in each]
    return sum(float(each.rpartition(" ")[2]) for each in found)


def settles(condition, patience_s=20):
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_metrics_have_the_names_and_labels_of_tritons_backend(running):
    before = metric(running, "vllm:generation_tokens_total{")
    running.chat(max_tokens=5, extra_body={"ignore_eos": True})

    labels = '{model="chat",version="1"}'
    assert settles(lambda: metric(running, f"vllm:generation_tokens_total{labels}") == before + 5)
    assert metric(running, f"vllm:prompt_tokens_total{labels}") > 0
    assert metric(running, f"vllm:e2e_request_latency_seconds_count{labels}") > 0
    assert metric(running, "vllm:time_to_first_token_seconds_bucket", 'le="+Inf"') > 0
    assert metric(running, "core_generation_tokens{") > 0


def test_the_memory_is_that_of_the_weights_and_the_cache(running, smollm2):
    (found,) = list(running.server.statistics("chat"))

    sizes = {each["type"]: each["byte_size"] for each in found["memory_usage"]}
    weights = (smollm2 / "model.safetensors").stat().st_size
    assert sum(sizes.values()) == pytest.approx(weights + 2**29, rel=0.05)


def test_after_vllm_has_died_the_model_is_not_ready_until_it_is_loaded_again(running):
    assert running.status("/v2/models/chat/ready") == 200
    for each in engines():
        os.kill(each, signal.SIGKILL)

    assert settles(lambda: running.status("/v2/models/chat/ready") != 200)
    status, body = running.post("/v2/models/chat/generate", text_input="a")
    assert status == 503, body
    running.server.unload("chat")
    running.server.load("chat")
    assert "Paris" in running.chat().message.content


def engines():
    """Return the process ids of vLLM's children of this process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        parent = int(stat.read_text().rpartition(") ")[2].split()[1])
        if parent == os.getpid() and b"EngineCore" in (stat.parent / "cmdline").read_bytes():
            found.append(int(stat.parent.name))
    return found
