"""EngineInstance: the only instance of an engine's model. It hands requests to the engine.

queue ─► [EngineInstance] ─► GenerationRun, or a thread for embeddings, scores, tokens, transcripts
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

import core
from core.batch import Batch
from core.costs import report_cost
from core.errors import cancelled, internal, invalid
from core.request import InferenceRequest
from core.similar import did_you_mean
from core_generate.engine import Prompt
from core_generate.prompt_size import check_counted, check_prompt, check_texts, size_of
from core_generate.reading import (
    GenerateRequest,
    missing,
    read_generate,
    read_prompt,
    read_speech,
    read_tokens,
    texts,
)
from core_generate.running import Done, GenerationRun
from core_generate.sampling import INPUT
from core_generate.sound import RATE
from core_generate.spans import describe_task
from core_generate.tokenizing import Tokenizer

if TYPE_CHECKING:
    from core_generate.model import EngineModel

_MOST_THREADS = 32
_MOST_ON_LOOP = 64 * 1024  # bytes of inputs and parameters that are read on the event loop
# Inputs that may be large; all others are one number.
_SIZED = ("text_input", "prompt_token_ids", INPUT, "image", "audio")

Outputs = Mapping[str, Any]


class EngineInstance(core.ModelInstance):
    """Hands requests to the engine, at most `Engine.most` at a time; the others wait in the model's queue."""

    placement = "callback"
    model: EngineModel

    def open(self) -> None:
        engine = self.model.engine
        self.model.measured.loop = self.loop
        self.ahead = max(1, engine.most)
        self._threads = ThreadPoolExecutor(
            min(self.ahead, _MOST_THREADS), thread_name_prefix=self.model.name
        )
        context = self.model.description.context
        self._tokenizer = Tokenizer(self.model.name, self.model.version, engine, self.loop, context)
        # What each task computes; `generate` alone has several responses.
        self._tasks: dict[str, Callable[[InferenceRequest], Outputs]] = {
            "embed": self._embed,
            "rank": self._rank,
            "transcribe": self._transcribe,
            "tokenize": self._tokenize,
            "detokenize": self._detokenize,
        }

    def close(self) -> None:
        self._tokenizer.close()
        self._threads.shutdown()

    def begin(self, batch: Batch, done: Done) -> None:
        request = batch.requests[0]
        task, parameters = self.model.description.task, None
        if request.has_parameters:
            parameters = request.parameters
            task = self._asked_task(parameters.get("task", task))
        if task != "generate":
            self._threads.submit(self._compute, batch, self._tasks[task], done)
            return
        inputs = request.inputs
        size = sum([size_of(inputs[name]) for name in _SIZED if name in inputs])
        if parameters:
            size += sum([len(each) for each in parameters.values() if type(each) is str])
        if size > _MOST_ON_LOOP:
            self._threads.submit(self._begin_large, batch, parameters, done)
        else:
            self._start(batch, self._read(request, parameters), done)

    def _begin_large(self, batch: Batch, parameters: Mapping[str, Any] | None, done: Done) -> None:
        """Read the only request of a batch on a thread of the instance; the event loop then starts it.

        If that raises, the event loop calls `done` with the error.
        """
        asked: GenerateRequest | None = None
        failed: BaseException | None = None
        try:
            if batch.requests[0].cancelled:
                raise cancelled()
            check_prompt(batch.requests[0].inputs, self.model.description.context)
            asked = self._read(batch.requests[0], parameters)
        except BaseException as raised:
            failed = raised

        def start() -> None:
            if asked is None:
                done(failed)
                return
            try:
                self._start(batch, asked, done)
            except BaseException as raised:
                done(raised)

        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            self.loop.call_soon_threadsafe(start)

    def _read(
        self, request: InferenceRequest, parameters: Mapping[str, Any] | None
    ) -> GenerateRequest:
        """Return what a request of the task "generate" asks for. Any thread. Raises CoreError(INVALID)."""
        asked = read_generate(request.inputs, self.model.engine.supports, parameters)
        if asked.stream and not self.model.config.model_transaction_policy.decoupled:
            raise invalid(
                f"model '{self.model.name}' is not decoupled, so it has one response: set "
                "model_transaction_policy { decoupled: true } in config.pbtxt for 'stream'"
            )
        return asked

    def _start(self, batch: Batch, asked: GenerateRequest, done: Done) -> None:
        """Start the generation of the only request of a batch. Event loop only."""
        request = batch.requests[0]
        run = GenerationRun(batch, asked, self.model.engine, self.model.measured, self.loop, done)
        report_cost(request, run)
        self.model.measured.running += 1
        request.on_cancel(run.cancel)
        if self.model.engine.quick:
            run.start()
        else:
            self._threads.submit(run.start)

    def _asked_task(self, task: Any) -> str:
        known = [self.model.description.task, "tokenize", "detokenize"]
        known = known[:1] if known[0] == "transcribe" else known
        if task not in known:
            hint = did_you_mean(str(task), known)
            raise invalid(
                f"the request parameter 'task' is '{task}', model '{self.model.name}' has "
                f"{', '.join(known)}{hint}"
            )
        return str(task)

    def _compute(
        self, batch: Batch, task: Callable[[InferenceRequest], Outputs], done: Done
    ) -> None:
        """Answer the only request of a batch with the outputs of `task`, on a thread of the instance.

        Then the event loop calls `done`: with None, or with the error. A cancelled request fails before the
        task runs; a NotImplementedError of the engine becomes CoreError(UNSUPPORTED).
        """
        error: BaseException | None = None
        try:
            if batch.requests[0].cancelled:
                raise cancelled()
            batch.respond(0, task(batch.requests[0]))
        except NotImplementedError as refused:
            error = core.CoreError(core.Kind.UNSUPPORTED, str(refused))
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            self.loop.call_soon_threadsafe(done, error)

    # tasks, each on a thread of the instance ----------------------------------

    def _embed(self, request: InferenceRequest) -> Outputs:
        if "prompt_token_ids" in request.inputs:
            prompts = [Prompt(tokens=read_prompt(request.inputs)[1] or ())]
        else:
            prompts = [Prompt(text=each) for each in self._texts(request, "text_input")]
        found, counts = self.model.engine.embed(prompts)
        self.model.measured.read(sum(counts))
        if request.trace is not None:
            describe_task(request.trace, "embeddings", self.model.name, {}, sum(counts))
        return {
            "embedding": self._checked("embedding", found, 2, len(prompts)),
            "num_input_tokens": np.array(counts, np.uint32),
        }

    def _rank(self, request: InferenceRequest) -> Outputs:
        query = self._texts(request, "query")[0]
        documents = self._texts(request, "documents")
        found, count = self.model.engine.rank(query, documents)
        self.model.measured.read(count)
        if request.trace is not None:
            describe_task(request.trace, "rerank", self.model.name, {}, count)
        return {
            "scores": self._checked("scores", found, 1, len(documents)),
            "num_input_tokens": np.array([count], np.uint32),
        }

    def _transcribe(self, request: InferenceRequest) -> Outputs:
        engine = self.model.engine

        def stopped() -> bool:
            return request.cancelled

        speech = read_speech(request.inputs, engine.supports, stopped)
        found = engine.transcribe(speech, stopped)
        segments = found.segments
        if request.trace is not None:
            facts = {"request.temperature": speech.temperature, "output.type": "text"}
            describe_task(request.trace, "transcription", self.model.name, facts)
        return {
            "text_output": _encoded([found.text]),
            "language": _encoded([found.language]),
            "duration": np.array([len(speech.samples) / RATE], np.float32),
            "segment_text": _encoded([each.text for each in segments]),
            "segment_start": np.array([each.start_s for each in segments], np.float32),
            "segment_end": np.array([each.end_s for each in segments], np.float32),
        }

    def _tokenize(self, request: InferenceRequest) -> Outputs:
        text = "".join(texts(request.inputs, "text_input"))
        check_counted(text, self.model.description.context)
        special = bool(request.parameters.get("special", True))
        tokens = self.model.engine.tokenize(text, special)
        return {"token_ids": np.array(tokens, np.int32)}

    def _detokenize(self, request: InferenceRequest) -> Outputs:
        if (tensor := request.inputs.get("prompt_token_ids")) is None:
            raise missing("prompt_token_ids")
        tokens = read_tokens(tensor)
        text = self.model.engine.detokenize(tokens)
        return {"text_output": _encoded([text])}

    def _texts(self, request: InferenceRequest, name: str) -> list[str]:
        """Return the texts of an input. Raises CoreError(INVALID) as `texts`, and PromptTooLong."""
        found = texts(request.inputs, name)
        check_texts(found, name, self.model.description.context)
        return found

    def _checked(self, name: str, found: Any, dimensions: int, rows: int) -> Any:
        array = np.ascontiguousarray(found, np.float32)
        if array.ndim != dimensions or array.shape[0] != rows:
            raise internal(
                f"the engine of model '{self.model.name}' returned {name} of shape "
                f"{list(array.shape)} for {rows} texts"
            )
        return array


def _encoded(found: Sequence[str]) -> Any:
    """Return the texts as an array of a BYTES output."""
    return np.array([each.encode(errors="replace") for each in found], object)
