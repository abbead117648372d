"""POST /v1/completions: a text, or several, that continue prompts of text or tokens.

prompts, n ─► one request for each text ─► choices, in the order of the prompts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frontend_openai.adapter import Asked, Prompt, TextModel
from frontend_openai.completion_choice import CompletionEvents, CompletionText
from frontend_openai.document import Document, read_document
from frontend_openai.errors import naming, wrong
from frontend_openai.events import DONE, Chunks, Head, Usage, error_event
from frontend_openai.generation import Generation
from frontend_openai.models import TextModels
from frontend_openai.off_loop import off_loop
from frontend_openai.options import OpenAIOptions
from frontend_openai.sampling import MOST_CHOICES, SamplingFields, is_tokens, read_sampling
from frontend_openai.service import run
from frontend_openai.tokens import detokenized
from frontends.http.message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from core.request import InferenceRequest
    from core.server import InferenceServer

_MOST_LOGPROBS = 20
_WITHOUT_EFFECT = (
    *("user", "metadata", "store", "service_tier"),
    *("safety_identifier", "prompt_cache_key"),
)


@dataclass(slots=True)
class Choices:
    """How many texts a prompt gets, and what they have.

    n        texts of each prompt in the response
    best     texts that are generated for it
    """

    n: int
    best: int
    stream: bool
    usage: bool
    logprobs: int | None
    echo: bool

    @property
    def counts(self) -> bool:
        """Return whether the tokens are counted."""
        return self.usage or not self.stream


async def completions(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Generate the continuation of prompts, as one JSON object or as events."""
    document = await read_document(call.body)
    name = document.text("model")
    model, adapter = TextModels.of(server).find(name)
    call.captures = {"model": model.signature.name, "version": None}
    default = OpenAIOptions.of(server.options).openai_default_max_tokens
    prompts, choices, requests = await off_loop(
        len(call.body), _read, document, model, adapter, default
    )
    head = Head("cmpl", "text_completion", name or "")
    usage = Usage(len(prompts), choices.counts)
    order = [number for number in range(len(prompts)) for _ in range(choices.best)]
    before = await _echoes(server, call, model, prompts) if choices.echo else {}
    echoes = [before.get(number, "") for number in order]
    if choices.stream:
        chunks = Chunks(head, choices.usage)
        events = [
            CompletionEvents(chunks, index, number, usage, echoes[index], choices.logprobs)
            for index, number in enumerate(order)
        ]
        generation = Generation(
            events, model.output, lambda: tail(chunks, usage, choices.usage), error_event
        )
        with naming("prompt", "structured_outputs"):
            return await run(server, call, model, generation, requests, usage, None, order)
    texts = [
        CompletionText(number, usage, echoes[index], choices.logprobs)
        for index, number in enumerate(order)
    ]
    generation = Generation(texts, model.output, bytes, error_event)

    def whole() -> dict[str, Any]:
        best = _best(texts, choices)
        members = [each.members(index) for index, each in enumerate(best)]
        return {**head.members, "choices": members, "usage": usage.members()}

    with naming("prompt", "structured_outputs"):
        return await run(server, call, model, generation, requests, usage, whole, order)


def _read(
    document: Document, model: TextModel, adapter: str, default: int
) -> tuple[list[Prompt], Choices, list[InferenceRequest]]:
    """Read all fields. Return the prompts, what they get, and the requests to the model.

    adapter   "" for none
    default   tokens at most without a field for them, 0 for OpenAI's default
    Raises CoreError(INVALID) for a wrong field, and for what the model cannot do.
    """
    prompts = _read_prompts(document)
    sampling = read_sampling(document, default, chat=False)
    choices = _read_choices(document, sampling, len(prompts))
    sampling.set("lora_name", adapter or None, "model")
    priority = read_priority(document, model)
    document.ignore(_WITHOUT_EFFECT)
    document.end()
    if choices.echo and not model.info.is_engine and any(prompt.tokens for prompt in prompts):
        what = f"model '{model.signature.name}' does not tell the text of a prompt of tokens"
        raise wrong("echo", what, "unsupported")
    for prompt in prompts:
        model.check(prompt, sampling)
    best = choices.best > choices.n
    asked = Asked(choices.stream, choices.counts, choices.logprobs is not None, best, priority)
    samplings = [seeded(sampling, number) for number in range(choices.best)]
    requests = [
        request for prompt in prompts for request in model.requests(prompt, samplings, asked)
    ]
    return prompts, choices, requests


async def _echoes(
    server: InferenceServer, call: HttpRequest, model: TextModel, prompts: Sequence[Prompt]
) -> dict[int, str]:
    """Return the text of each prompt by its number; for tokens, it is what the engine has for them."""
    return {
        number: await detokenized(server, call, model.signature.name, prompt.tokens)
        if prompt.tokens
        else prompt.text
        for number, prompt in enumerate(prompts)
    }


def seeded(sampling: SamplingFields, number: int) -> SamplingFields:
    """Return the sampling of one of several texts: with a seed each has its own, so that they differ."""
    seed = sampling.values.get("seed")
    if not number or seed is None:
        return sampling
    moved = (seed + number + 2**63) % 2**64 - 2**63
    return SamplingFields({**sampling.values, "seed": moved}, sampling.sources)


def tail(chunks: Chunks, usage: Usage, wanted: bool) -> bytes:
    """Return the last events of a stream: the usage, if it is wanted and known, and the end."""
    members = usage.members() if wanted else None
    return DONE if members is None else chunks.usage(members) + DONE


def read_stream(document: Document) -> tuple[bool, bool]:
    """Return whether the response is a stream, and whether its last event has the usage."""
    stream = document.flag("stream") or False
    options = document.inner("stream_options")
    if options is None:
        return stream, False
    if not stream:
        raise wrong("stream_options", "can only be used when stream is true")
    usage = options.flag("include_usage") or False
    options.ignore(("include_obfuscation",))
    options.end()
    return stream, usage


def read_priority(document: Document, model: TextModel) -> int:
    """Return the level in the queue of the model that a request asks for, 0 for the default.

    Raises FieldError for a level that the queue does not have.
    """
    levels = model.info.levels
    found = document.integer("priority", 0, levels or 2**31 - 1) or 0
    if found and not levels:
        raise wrong(
            "priority",
            f"the queue of model '{model.signature.name}' has no levels; leave the field out, or set "
            "dynamic_batching.priority_levels in its configuration",
            "unsupported",
        )
    return found


def _best(texts: Sequence[CompletionText], choices: Choices) -> Sequence[CompletionText]:
    if choices.best == choices.n:
        return texts
    found: list[CompletionText] = []
    for start in range(0, len(texts), choices.best):
        group = sorted(texts[start : start + choices.best], key=lambda each: -each.score)
        found += group[: choices.n]
    return found


def _read_choices(document: Document, sampling: SamplingFields, prompts: int) -> Choices:
    stream, usage = read_stream(document)
    n = document.integer("n", 1, MOST_CHOICES) or 1
    best = document.integer("best_of", 1, MOST_CHOICES) or n
    if best < n:
        raise wrong("best_of", f"{best} is less than n, which is {n}")
    if best > n and stream:
        raise wrong("best_of", "the best texts are known at the end only: not with stream")
    if prompts * best > MOST_CHOICES:
        raise wrong("n", f"{prompts} prompts of {best} texts; at most {MOST_CHOICES} texts in all")
    logprobs = document.integer("logprobs", 0, _MOST_LOGPROBS)
    echo = document.flag("echo") or False
    if echo and logprobs is not None:
        raise wrong("echo", "the logprobs of a prompt are not available: not with logprobs")
    if logprobs is not None:
        sampling.set("logprobs", logprobs)
    elif best > n:
        sampling.set("logprobs", 0, "best_of")
    return Choices(n, best, stream, usage, logprobs, echo)


def _read_prompts(document: Document) -> list[Prompt]:
    """Return the prompts: a text, tokens, or a list of either."""
    found = document.take("prompt")
    suffix = document.text("suffix")
    if type(found) is str or (found and is_tokens(found)):
        found = [found]
    if type(found) is not list or not found:
        raise wrong("prompt", "expected a string, a list of tokens, or a list of these")
    if len(found) > MOST_CHOICES:
        raise wrong("prompt", f"{len(found)} prompts; at most {MOST_CHOICES} are accepted")
    prompts = []
    for number, each in enumerate(found):
        if type(each) is str:
            prompts.append(Prompt(each, suffix=suffix))
        elif each and is_tokens(each):
            prompts.append(Prompt(tokens=each, suffix=suffix))
        else:
            raise wrong(f"prompt[{number}]", "expected a string or a list of tokens")
    return prompts
