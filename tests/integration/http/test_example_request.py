"""The command with curl that `core serve` shows, run by a shell."""

import asyncio
import io
import json
import shutil
import wave

import numpy as np
import pytest

import core
from core.options import Options
from core.server import InferenceServer
from frontends.http.frontend import HttpFrontend
from frontends.http.options import HttpOptions
from frontends.terminal.example import curl
from frontends.terminal.summary import listeners, url

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")

EARS = """
backend: "test"
input [
  { name: "audio" data_type: TYPE_STRING dims: [ 1 ] optional: true },
  { name: "language" data_type: TYPE_STRING dims: [ 1 ] optional: true },
  { name: "prompt" data_type: TYPE_STRING dims: [ 1 ] optional: true }
]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
TEXTS = """
backend: "test"
input [
  { name: "audio" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "text" data_type: TYPE_STRING dims: [ 1 ] }
]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


class Hears(core.ModelInstance):
    """Return what a sound is: samples, their rate and size."""

    def execute(self, batch):
        if "text" in batch:
            return {"text_output": batch["text"]}
        assert "language" not in batch and "prompt" not in batch
        with wave.open(io.BytesIO(batch["audio"].ravel()[0])) as sound:
            silent = not any(sound.readframes(sound.getnframes()))
            found = f"{sound.getnframes()} {sound.getframerate()} {sound.getsampwidth()} {silent}"
        return {"text_output": np.array([found.encode()], object)}


async def printed(folder, config):
    """Serve a model; return what its command prints."""
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "config.pbtxt").write_text(config)
    backend = core.Backend(instance=Hears)
    options = Options.defaults(
        HttpOptions(http_address="127.0.0.1", http_port=0),
        model_repository=[str(folder)],
        disable_auto_complete_config=True,
    )
    server = InferenceServer(options, find_backend=lambda name: backend)
    frontend = HttpFrontend(server)
    await frontend.start()
    await server.start()
    try:
        listener = listeners(server.options, {"HTTPService": frontend.port})["http"]
        command = curl(server, "m", listener, url(listener))
        shell = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(shell.communicate(), 60)
        return json.loads(out)
    finally:
        await frontend.stop(5)
        await server.stop(5)


async def test_a_model_of_speech_gets_a_sound(tmp_path):
    answer = await printed(tmp_path, EARS)

    assert answer["text_output"] == "8000 16000 2 True"


async def test_a_sound_in_a_sequence_has_its_parameters(tmp_path):
    answer = await printed(tmp_path, EARS + "sequence_batching { }\nmax_batch_size: 1\n")

    assert answer["text_output"] == "8000 16000 2 True"


async def test_a_model_that_needs_more_than_a_sound_gets_texts(tmp_path):
    answer = await printed(tmp_path, TEXTS)

    assert answer["text_output"] == "text"
