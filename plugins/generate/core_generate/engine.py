"""The contract of engines: what generates tokens, transcribes speech, or computes embeddings and scores.

request ─► EngineInstance ─► [Engine.generate] ─► Event, Event, … ─► responses of the model

An engine runs many generations at once and batches them itself. Queueing, priorities, deadlines and limits
are those of core: EngineInstance has at most `Engine.most` in the engine, the others wait in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from core.errors import CoreError


def never() -> bool:
    """Return False: what is asked for goes on."""
    return False


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an engine continues: text or tokens, never both.

    text      text with the chat template, if there is one, already applied: the engine reads special tokens
              in it as such; "" if there are tokens
    tokens    numbers of the engine's vocabulary; () if there is a text
    images    files of images, in the order of their places in the text
    audio     files of sound, in the order of their places in the text
    suffix    text that follows the place which the engine fills in; "" if it continues the text
    adapter   name of a LoRA adapter; "" for none
    stopped   whether the request is cancelled; always False for a prompt without images and sound. An engine
              whose `generate` decodes them asks it between their parts, and before it computes anything; if
              so, it raises `core.errors.cancelled()`. One that decodes after `generate` has returned learns
              it by `Generation.cancel`
    """

    text: str = ""
    tokens: Sequence[int] = ()
    images: Sequence[bytes] = ()
    audio: Sequence[bytes] = ()
    suffix: str = ""
    adapter: str = ""
    stopped: Callable[[], bool] = field(default=never, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Structure:
    """What the generated text must match: exactly one field is set.

    schema    a JSON schema, as a document; True for any JSON object
    regex     a regular expression for the whole text
    grammar   a grammar in the engine's own form, such as GBNF
    choices   texts of which one is generated
    """

    schema: Mapping[str, Any] | bool | None = None
    regex: str = ""
    grammar: str = ""
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen and when a generation ends. Defaults change nothing: None is the engine's own.

    max_tokens           tokens to generate at most; None: until the context is full
    min_tokens           tokens that must be generated before a generation may end
    temperature          0 takes the most likely token each time
    top_p, top_k, min_p  limit the tokens that are left to choose from; top_k 0: all are left
    frequency_penalty, presence_penalty, repetition_penalty    make repetition less likely; 0, 0 and 1 do not
    seed                 the same seed, prompt and engine give the same tokens
    stop                 the text ends before the first of these strings
    stop_tokens          tokens that end the generation
    ignore_eos           whether the generation goes on after the token that ends a text
    logit_bias           token → number that is added to its logit
    logprobs             how many alternatives of each token are reported; 0: only the token; None: nothing
    structure            what the text must match
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: Sequence[str] = ()
    stop_tokens: Sequence[int] = ()
    ignore_eos: bool = False
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    structure: Structure | None = None


class Logprob(NamedTuple):
    """Probability of one token.

    text      text of the token; if the token is a part of a character, what stands for that part
    logprob   natural logarithm, at most 0
    top       the alternatives, most likely first
    """

    token: int
    text: str
    logprob: float
    top: tuple[Logprob, ...] = ()


class Event(NamedTuple):
    """A piece of a generation. The pieces' texts make the whole text.

    text            characters that are complete and cannot belong to a stop string
    tokens          tokens generated since the event before; () where the engine does not report them
    logprobs        log probabilities of these tokens; () unless the request asks for them
    finish          "stop" or "length" in the last event, "" in those before
    prompt_tokens   number of tokens of the prompt, in the last event at the latest; 0 in events without it
    cached_tokens   number of tokens of the prompt that were not computed again, in the last event or before
    count           number of tokens generated since the event before; 0: the length of `tokens`
    stop            the stop string that has ended the text, in the last event; "" if none has
    """

    text: str = ""
    tokens: Sequence[int] = ()
    logprobs: Sequence[Logprob] = ()
    finish: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    count: int = 0  # type: ignore[assignment]  # in place of tuple.count
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Speech:
    """A sound to transcribe.

    samples      FP32[samples] from -1 to 1: one channel, 16,000 a second; at least one
    language     language that is spoken, such as "en"; "" if the engine finds it out
    prompt       text before the sound, whose style and spelling the transcript follows; "" for none
    temperature  0 takes the most likely token each time; None: the engine's own
    times        whether the transcript has segments
    """

    samples: Any
    language: str = ""
    prompt: str = ""
    temperature: float | None = None
    times: bool = False


class Segment(NamedTuple):
    """A part of a transcript, with its place in the sound in seconds."""

    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is said in a sound.

    language   the language that is spoken, such as "en"; "" if the engine does not find it out
    segments   parts of the text in the order of their times; () unless the request asks for times
    """

    text: str
    language: str = ""
    segments: Sequence[Segment] = ()


Emit = Callable[["Event | CoreError"], None]


class Generation(Protocol):
    """A generation that runs."""

    def cancel(self) -> None:
        """Stop the generation and return at once. Any thread.

        50 ms later the engine computes no token of it. No further event is needed. Its place counts as free
        at once: another generation may start before this one has ended. A second call, or one after the last
        event, does nothing.
        """


@dataclass(frozen=True, slots=True)
class Status:
    """What an engine does now.

    waiting, running   number of generations that wait in the engine, and that it computes
    cache_use          part of the memory for contexts that is used, 0 to 1
    cache_tokens       number of tokens that the memory for contexts holds; 0 if unknown
    """

    waiting: int = 0
    running: int = 0
    cache_use: float = 0.0
    cache_tokens: int = 0


class Engine:
    """Base class of engines. All methods may be called on any thread, several at once.

    most       number of generations that run at once; more are not started
    quick      whether `generate` returns within some tens of microseconds, which allows calls on the event
               loop; otherwise a thread calls it
    supports   names of what it can do: fields of Prompt, Sampling and Structure whose values may differ from
               their defaults, and "tokens" for prompts of tokens; of an engine that transcribes, fields of
               Speech. Others are refused by their names before `generate` or `transcribe` is called;
               "max_tokens", "text" and "stop" are always supported
    """

    most: int = 1
    quick: bool = False
    supports: frozenset[str] = frozenset()

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Generation:
        """Start a generation, and return it without waiting for its end.

        emit   the engine calls it with each event in order, one call at a time, on any thread; the last event
               has a `finish`, or is a CoreError. `emit` returns at once and never raises. The engine may call
               it before this method returns
        Raises PromptTooLong for a prompt that is longer than the context, and StructureRefused for a
        structure that cannot be compiled (core_generate.errors).
        """
        raise NotImplementedError(f"{type(self).__name__} does not generate")

    def embed(self, prompts: Sequence[Prompt]) -> tuple[Any, list[int]]:
        """Return embeddings, FP32[prompts, dimensions], and each prompt's number of tokens. May take long."""
        raise NotImplementedError(f"{type(self).__name__} computes no embeddings")

    def rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        """Return a score for each document, FP32[documents], and the number of tokens read for all of them.

        The higher a score, the more relevant its document is to the query. May take long.
        """
        raise NotImplementedError(f"{type(self).__name__} ranks no documents")

    def transcribe(self, speech: Speech, stopped: Callable[[], bool]) -> Transcript:
        """Return the transcript of a sound. May take long.

        stopped   returns whether the request is cancelled. The engine asks it as often as it can, at best at
                  each token; if so, it raises `core.errors.cancelled()`
        Raises CoreError(INVALID) for a language that the model does not have.
        """
        raise NotImplementedError(f"{type(self).__name__} transcribes no speech")

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        """Return the tokens of a text. With `special`, they include those that begin and end a prompt."""
        raise NotImplementedError(f"{type(self).__name__} does not tokenize")

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        raise NotImplementedError(f"{type(self).__name__} does not detokenize")

    def status(self) -> Status:
        """Return at once how much the engine does now; an engine that does not report it returns zeros."""
        return Status()

    def close(self) -> None:
        """End all generations, then release all memory. Called once, when nothing more is started."""
