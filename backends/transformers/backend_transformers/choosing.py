"""Chooser: logits of one generation ─► its next token, and log probabilities."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from core_generate import Logprob, Sampling

from backend_transformers.structure import Matcher
from backend_transformers.vocabulary import Vocabulary

_GREEDY = 1e-5  # below this temperature, the most likely token is taken: a division would overflow
_LIKELY = 1024  # tokens among which those of top_p are searched first
_NOTHING = -torch.inf


@dataclass(frozen=True)
class _Limits:
    """How the next token is drawn: the request's values, else those of the model."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition: float


class Chooser:
    """Chooses the tokens of one generation, on the thread of the engine.

    prompt     tokens of the prompt
    defaults   sampling parameters where the request gives none
    ends       tokens that may not be chosen before `min_tokens`
    matcher    the structure that the text must match; None for any text
    """

    def __init__(
        self,
        sampling: Sampling,
        prompt: Collection[int],
        defaults: Mapping[str, float],
        ends: Collection[int],
        vocabulary: Vocabulary,
        matcher: Matcher | None,
    ):
        self._sampling = sampling
        self._limits = _limits(sampling, defaults)
        self._prompt = prompt
        self._ends = list(ends)
        self._vocabulary = vocabulary
        self._matcher = matcher
        self._generator = torch.Generator()
        self._generator.manual_seed(
            random.getrandbits(63) if sampling.seed is None else sampling.seed % 2**63
        )
        self._count = 0
        self._counts: Any = None  # FP32[vocabulary]: how often each token was generated
        self._seen: Any = None  # BOOL[vocabulary]: tokens of the prompt and generated ones
        self._penalties = bool(sampling.frequency_penalty or sampling.presence_penalty)
        self._changes = bool(
            self._penalties
            or self._limits.repetition != 1
            or sampling.logit_bias
            or matcher is not None
        )

    def choose(self, logits: Any, likely: int) -> tuple[int, tuple[Logprob, ...]]:
        """Return the next token, and its log probability if the request wants logprobs.

        logits   FP32[vocabulary], unchanged afterwards
        likely   the token with the highest logit
        """
        found = logits
        if self._changes or self._count < self._sampling.min_tokens:
            found = self._changed(logits.clone())
            likely = -1
        if self._limits.temperature >= _GREEDY:
            token = self._drawn(found / self._limits.temperature)
        else:
            token = likely if likely >= 0 else int(found.argmax())
        self._count += 1
        if self._counts is not None:
            self._counts[token] += 1
        if self._seen is not None:
            self._seen[token] = True
        if self._sampling.logprobs is None:
            return token, ()
        return token, (self._logprob(logits, token, self._sampling.logprobs),)

    def _changed(self, logits: Any) -> Any:
        """Return logits after penalties, biases, `min_tokens` and structure; it changes its argument."""
        sampling = self._sampling
        if (repetition := self._limits.repetition) != 1:
            if self._seen is None:
                self._seen = torch.zeros_like(logits, dtype=torch.bool)
                self._seen[torch.tensor(list(self._prompt), device=logits.device)] = True
            less = torch.where(logits > 0, logits / repetition, logits * repetition)
            logits = torch.where(self._seen, less, logits)
        if self._penalties:
            if self._counts is None:
                self._counts = torch.zeros_like(logits)
            logits -= self._counts * sampling.frequency_penalty
            logits -= (self._counts > 0) * sampling.presence_penalty
        for token, bias in sampling.logit_bias.items():
            logits[token] += bias
        if self._matcher is not None:
            logits = logits.masked_fill(~self._matcher.allowed(logits), _NOTHING)
        if self._ends and self._count < sampling.min_tokens:
            shorter = logits.clone()
            shorter[self._ends] = _NOTHING
            if self._matcher is None or shorter.max() > _NOTHING:
                logits = shorter
        return logits

    def _drawn(self, logits: Any) -> int:
        """Return a token drawn at random from those that top_k, top_p and min_p leave."""
        limits, tokens = self._limits, None
        total = logits.logsumexp(-1)
        if limits.top_k and limits.top_k < len(logits):
            logits, tokens = logits.topk(limits.top_k)
            total = logits.logsumexp(-1)
        elif limits.top_p < 1:
            best, tokens = logits.topk(min(_LIKELY, len(logits)))
            if (best - total).exp().sum() < limits.top_p:
                best, tokens = logits.sort(descending=True)
            logits = best
        chances = (logits - total).exp()
        if limits.top_p < 1:  # the logits are sorted
            before = chances.cumsum(-1) - chances
            chances = chances.masked_fill(before >= limits.top_p, 0.0)
        if limits.min_p:
            chances = chances.masked_fill(chances < limits.min_p * chances.max(), 0.0)
        place = int(torch.multinomial(chances.cpu(), 1, generator=self._generator))
        return place if tokens is None else int(tokens[place])

    def _logprob(self, logits: Any, token: int, alternatives: int) -> Logprob:
        piece = self._vocabulary.piece
        logprobs = logits.log_softmax(-1)
        top: tuple[Logprob, ...] = ()
        if alternatives:
            values, tokens = logprobs.topk(min(alternatives, len(logits)))
            top = tuple(
                Logprob(other, piece(other), min(0.0, value))
                for other, value in zip(tokens.tolist(), values.tolist(), strict=True)
            )
        return Logprob(token, piece(token), min(0.0, float(logprobs[token])), top)


def _limits(sampling: Sampling, defaults: Mapping[str, float]) -> _Limits:
    """Return the request's values, else those of the model, else those that change nothing."""

    def value(name: str, neutral: float) -> float:
        given = getattr(sampling, name)
        return float(defaults.get(name, neutral) if given is None else given)

    repetition = sampling.repetition_penalty
    return _Limits(
        temperature=value("temperature", 1.0),
        top_p=value("top_p", 1.0),
        top_k=int(value("top_k", 0)),
        min_p=value("min_p", 0.0),
        repetition=defaults.get("repetition_penalty", 1.0) if repetition == 1 else repetition,
    )
