"""The choice of the next letter: logits, penalties, biases, temperature, top_k, top_p and min_p."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable

from core_generate import Logprob, Sampling

ALPHABET = b"abcdefghijklmnopqrstuvwxyz "
_LN2 = math.log(2)

Chances = list[tuple[int, float]]  # (token, logarithm of its probability), most likely first


def is_plain(sampling: Sampling) -> bool:
    """Return whether a request takes the most likely letter, without logprobs, biases and penalties."""
    return (
        not sampling.temperature
        and sampling.logprobs is None
        and not sampling.logit_bias
        and not sampling.frequency_penalty
        and not sampling.presence_penalty
        and sampling.repetition_penalty == 1.0
    )


def chances_of(after: int, before: Counter[int], sampling: Sampling) -> Chances:
    """Return the letters, and other ASCII characters with a bias, with the logarithms of their probabilities.

    after    index in ALPHABET of the previous letter, -1 for none. Without penalties and biases, its
             successor is the most likely letter, and each further one is half as likely as the one before it
    before   how often each token was generated
    """
    logits = {}
    for rank in range(len(ALPHABET)):
        token = ALPHABET[(after + 1 + rank) % len(ALPHABET)]
        logit = (len(ALPHABET) - rank) * _LN2
        if count := before[token]:
            logit /= sampling.repetition_penalty
            logit -= count * sampling.frequency_penalty + sampling.presence_penalty
        logits[token] = logit
    for token, bias in sampling.logit_bias.items():
        if token in logits or token < 128:
            logits[token] = logits.get(token, 0.0) + bias
    return _normal(logits.items(), sampling.temperature or 1.0)


def left(chances: Chances, sampling: Sampling) -> Chances:
    """Return the letters that top_k, top_p and min_p permit, with probabilities that add up to 1 again."""
    if sampling.top_k:
        chances = chances[: sampling.top_k]
    if sampling.min_p:
        least = chances[0][1] + math.log(sampling.min_p)
        chances = [each for each in chances if each[1] >= least]
    if sampling.top_p is not None and sampling.top_p < 1:
        total, count = 0.0, 0
        for _, logprob in chances:
            if total >= sampling.top_p:
                break
            total += math.exp(logprob)
            count += 1
        chances = chances[:count]
    return _normal(chances, 1.0)


def drawn(chances: Chances, seed: str, step: int) -> int:
    """Return a token, drawn by probability; the same chances, seed and step give the same token."""
    digest = hashlib.blake2b(f"{seed} {step}".encode(), digest_size=8).digest()
    point = int.from_bytes(digest, "little") / 2**64
    for token, logprob in chances:
        point -= math.exp(logprob)
        if point < 0:
            return token
    return chances[-1][0]


def logprob_of(token: int, chances: Chances, most: int) -> Logprob:
    """Return the Logprob of `token`, which includes those of the `most` most likely tokens."""
    known = dict(chances)
    top = tuple(Logprob(each, chr(each), logprob) for each, logprob in chances[:most])
    return Logprob(token, chr(token), known[token], top)


def _normal(logits: Iterable[tuple[int, float]], temperature: float) -> Chances:
    found = [(token, logit / temperature) for token, logit in logits]
    found.sort(key=lambda each: -each[1])
    highest = found[0][1]
    total = highest + math.log(sum(math.exp(logit - highest) for _, logit in found))
    return [(token, min(0.0, logit - total)) for token, logit in found]
