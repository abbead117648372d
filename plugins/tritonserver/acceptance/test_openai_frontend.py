"""Triton's OpenAI frontend, from a copy of its source (server/python/openai) that TRITON_OPENAI names."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest

# The tensors of Triton's vLLM backend. The answer is the prompt.
CONFIG = """
backend: "python"
model_transaction_policy { decoupled: true }
input [
  { name: "text_input" data_type: TYPE_STRING dims: [1] },
  { name: "stream" data_type: TYPE_BOOL dims: [1] optional: true },
  { name: "sampling_parameters" data_type: TYPE_STRING dims: [1] optional: true },
  { name: "exclude_input_in_output" data_type: TYPE_BOOL dims: [1] optional: true },
  { name: "return_logprobs" data_type: TYPE_BOOL dims: [1] optional: true },
  { name: "return_num_input_tokens" data_type: TYPE_BOOL dims: [1] optional: true },
  { name: "return_num_output_tokens" data_type: TYPE_BOOL dims: [1] optional: true }
]
output [{ name: "text_output" data_type: TYPE_STRING dims: [-1] }]
"""
MODEL = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for each in requests:
            text = pb_utils.get_input_tensor_by_name(each, "text_input").as_numpy()
            sender = each.get_response_sender()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("text_output", text)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.timeout(300)
def test_its_chats_and_completions_are_served_by_the_module(tools, tmp_path):
    python = tools.find("openai/bin/python")
    source = os.environ.get("TRITON_OPENAI")
    if not source:
        pytest.skip("TRITON_OPENAI names no folder: it is server/python/openai of Triton's source")
    frontend = Path(source, "openai_frontend")
    model = tmp_path / "models" / "echo"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    (model / "1" / "model.py").write_text(MODEL)
    port, http, grpc = tools.free_ports(3)

    process = subprocess.Popen(
        [
            python,
            frontend / "main.py",
            f"--model-repository={tmp_path / 'models'}",
            "--backend=vllm",
            f"--openai-port={port}",
            "--enable-kserve-frontends",
            f"--kserve-http-port={http}",
            f"--kserve-grpc-port={grpc}",
        ],
        cwd=frontend,
    )
    try:
        tools.wait_for(f"http://127.0.0.1:{port}/health/ready", process)
        tools.wait_for(f"http://127.0.0.1:{http}/v2/health/ready", process)
        body = {"model": "echo", "prompt": "hello there"}
        assert post(port, "/v1/completions", body)["choices"][0]["text"] == "hello there"
        streamed = raw(port, "/v1/completions", {**body, "stream": True})
        assert b"hello there" in streamed and streamed.rstrip().endswith(b"[DONE]")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            assert b"nv_inference_request_success" in response.read()
    finally:
        process.terminate()
        process.wait(60)


def raw(port, path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read()


def post(port, path, body):
    return json.loads(raw(port, path, body))
