"""Starts llama.cpp's server in this process, and calls it.

Settings ─► [Library] ─► xllamacpp.Server ─► threads of llama.cpp

llama.cpp's server always listens as well, without a check of callers: here on a socket in a folder that only
this user may enter. The socket answers what the Python interface does not offer, such as /tokenize.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import xllamacpp
from core_generate import PromptTooLong, StructureRefused

from backend_llamacpp import runs
from backend_llamacpp.settings import MARKER, Settings
from core.errors import CoreError, internal, invalid

_starting = threading.Lock()  # llama.cpp has variables of the process, which a start writes
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIZE = 256  # bytes, at least those of a struct sigaction
_CHUNK = 2**24
_TIMEOUT_S = 60.0
_OK = 200
_DATA = b"data: "

_PROMPTS_ON_CPU = 128  # tokens of prompts in one batch
_PROMPTS_ON_GPU = 512
_IMAGE = 2048

OnChunk = Callable[[bytes], bool]


class Library:
    """A running server of llama.cpp. Thread-safe, but for `close`.

    batch   tokens of prompts and generations that it computes at once

    Raises CoreError(INTERNAL) if llama.cpp refuses the file or the settings; it writes the reason to stderr.
    """

    def __init__(self, file: Path, settings: Settings):
        self._short_runs = settings.short_runs
        self._folder = tempfile.mkdtemp(prefix="llamacpp-")  # mode 0700
        self._socket = f"{self._folder}/llama.sock"
        for each in (file, settings.projector):
            if each is not None:
                _read_into_memory(each)
        parameters = _parameters(file, settings, self._socket)
        self.batch: int = parameters.n_batch
        try:
            with _starting, _kept_signals():
                self._server = xllamacpp.Server(parameters)
            self._await_loop()
            self._marker = self._own_marker() if settings.projector else ""
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            self.close()
            raise internal(
                f"llama.cpp cannot load '{file}': {error} It writes the reason to the standard error"
            ) from None

    def complete(self, request: dict[str, Any], on_chunk: OnChunk) -> None:
        """Generate. Returns at the end; takes long.

        request    the fields of llama.cpp's /v1/completions, or of /completion if its prompt has images or
                   sounds, which have the text MARKER as their places
        on_chunk   takes each chunk of the stream, a JSON text, on this thread; True ends the generation
        """
        self.check(request["prompt"])
        if isinstance(request["prompt"], dict):
            self._complete_media(request, on_chunk)
        else:
            self._server.handle_completions(orjson.dumps(request), on_chunk)

    def _complete_media(self, request: dict[str, Any], on_chunk: OnChunk) -> None:
        # llama.cpp's own marker is random, so that no text can contain it by intention.
        prompt = request["prompt"]
        prompt["prompt_string"] = prompt["prompt_string"].replace(MARKER, self._marker)
        with self._post("/completion", request, None) as response:
            if response.status != _OK:
                on_chunk(response.read())
                return
            for line in response:
                if line.startswith(_DATA) and on_chunk(line[len(_DATA) :]):
                    return  # the connection ends, and with it the generation

    def check(self, given: Any) -> None:
        """Raise CoreError(INVALID) if a text, or one of several, would end the process.

        given   a prompt, a text or a list of texts; lists of tokens are not looked at
        """
        if not self._short_runs:
            return
        if isinstance(given, dict):
            given = given["prompt_string"]
        for each in [given] if isinstance(given, str) else given:
            if isinstance(each, str):
                runs.check(each)

    def embed(self, request: bytes) -> Any:
        """Return the answer to a request for /v1/embeddings, which may be an error."""
        return orjson.loads(self._server.handle_embeddings(request))

    def rank(self, request: bytes) -> Any:
        """Return the answer to a request for /v1/rerank, which may be an error."""
        return orjson.loads(self._server.handle_rerank(request))

    def call(self, path: str, document: object) -> Any:
        """POST a document to a path of the socket, and return the answer. Raises CoreError for an error."""
        with self._post(path, document, _TIMEOUT_S) as response:
            answer = orjson.loads(response.read())
        raise_error(answer)
        return answer

    @contextlib.contextmanager
    def _post(
        self, path: str, document: object, timeout_s: float | None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _Connection(self._socket, timeout_s)
        try:
            connection.request(
                "POST", path, orjson.dumps(document), {"Content-Type": "application/json"}
            )
            yield connection.getresponse()
        finally:
            connection.close()

    def _await_loop(self) -> None:
        """Wait until the loop of llama.cpp runs. The start waits for the model only.

        A loop that is told to end before it has begun never ends, and the process stands still.
        """
        self._get("/lora-adapters")  # the loop answers it

    def _own_marker(self) -> str:
        return str(self._get("/props")["media_marker"])

    def _get(self, path: str) -> Any:
        connection = _Connection(self._socket, _TIMEOUT_S)
        try:
            connection.request("GET", path)
            return orjson.loads(connection.getresponse().read())
        finally:
            connection.close()

    def close(self) -> None:
        """End all that runs, and release the memory. No other method may run any more."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)


def raise_error(answer: Any) -> None:
    """If an answer of llama.cpp is an error, raise it as a CoreError; otherwise do nothing."""
    if error := answer.get("error") if isinstance(answer, dict) else None:
        raise error_of(error)


def error_of(error: Any) -> CoreError:
    """Return the error for llama.cpp's: {"code": 400, "message": "…", "type": "…"}."""
    if not isinstance(error, dict):
        return internal(f"llama.cpp: {error}")
    if error.get("type") == "exceed_context_size_error":
        tokens, context = error.get("n_prompt_tokens"), error.get("n_ctx")
        return PromptTooLong(
            f"the prompt has {tokens} tokens, and the context of the model is {context} tokens, for prompt "
            "and answer together; send a shorter prompt, or load the model with a larger parameter 'context'"
        )
    if "failed to parse grammar" in str(error.get("message")):
        return StructureRefused(
            "the grammar cannot be compiled: llama.cpp cannot parse it; check its rules, the first is root"
        )
    code = error.get("code", 500)
    kind = invalid if isinstance(code, int) and 400 <= code < 500 else internal
    return kind(f"llama.cpp: {error.get('message')}")


class _Connection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, timeout_s: float | None):
        super().__init__("llama", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _parameters(file: Path, settings: Settings, address: str) -> Any:
    found = xllamacpp.CommonParams()
    found.model.path = str(file)
    found.hostnames = [address]
    found.ui = False
    found.endpoint_slots = False
    found.verbosity = 1  # errors only
    found.warmup = False
    found.n_ctx = settings.context * settings.slots
    found.n_parallel = settings.slots
    # Each slot has its own context: none takes that of another. For embeddings, llama.cpp would then compute
    # texts of several lengths in parts, and pool the last part of each only.
    found.kv_unified = settings.task != "generate"
    batch = settings.batch or _suitable_batch(settings)
    found.n_batch = batch
    found.n_ubatch = batch if settings.projector else min(batch, _PROMPTS_ON_GPU)
    found.cpuparams.n_threads = settings.threads
    found.cpuparams_batch.n_threads = settings.threads
    found.cache_ram_mib = settings.prompt_cache_mb
    if settings.gpu_layers is not None:
        found.n_gpu_layers = settings.gpu_layers
    if settings.projector is not None:
        found.mmproj.path = str(settings.projector)
    kind = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{settings.cache_type.upper()}")
    found.cache_type_k = found.cache_type_v = kind
    found.lora_init_without_apply = True
    found.lora_adapters = [
        xllamacpp.CommonAdapterLoraInfo(str(each), 0.0) for each in settings.adapters.values()
    ]
    if settings.task != "generate":
        found.embedding = True
        # A text is computed at once. llama.cpp ends the process if the slots do not divide the batch.
        found.n_batch = found.n_ubatch = settings.context + -settings.context % settings.slots
        pooling = settings.pooling if settings.task == "embed" else "rank"
        if pooling:
            found.pooling_type = getattr(
                xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{pooling.upper()}"
            )
    return found


def _suitable_batch(settings: Settings) -> int:
    """Return how many tokens a batch has: each generation's next one, and some of new prompts.

    All tokens of an image must fit in one batch: some models look at them together, and llama.cpp reduces
    the image if they do not fit.

    A CPU computes 128 tokens as fast as 512, token by token. With the smaller batch the first of several
    prompts has its token before the last is computed, and generations wait less for new prompts.
    """
    cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    has_gpu = any(device["type"] != cpu for device in xllamacpp.get_device_info())
    least = _PROMPTS_ON_GPU if has_gpu else _PROMPTS_ON_CPU
    return max(_IMAGE if settings.projector else least, 2 * settings.slots)


def _read_into_memory(file: Path) -> None:
    """Read a file, so that the start, which holds the GIL, does not wait for the disk."""
    buffer = bytearray(_CHUNK)
    with file.open("rb", buffering=0) as source:
        while source.readinto(buffer):
            pass


@contextlib.contextmanager
def _kept_signals() -> Iterator[None]:
    """After the with statement, restore the handlers of _SIGNALS, which llama.cpp replaces at its start."""
    sigaction = ctypes.CDLL(None).sigaction
    before = {number: ctypes.create_string_buffer(_SIZE) for number in _SIGNALS}
    for number, action in before.items():
        sigaction(number, None, action)
    try:
        yield
    finally:
        for number, action in before.items():
            sigaction(number, action, None)
