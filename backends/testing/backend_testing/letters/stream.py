"""Stream: one generation of Letters."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

from core_generate import Emit, Event, Logprob, Sampling, StopStrings

from backend_testing.letters.chances import (
    ALPHABET,
    chances_of,
    drawn,
    is_plain,
    left,
    logprob_of,
)

BOS, EOS = 256, 257
_PLAIN_EVENTS = [Event(chr(each), (each,), count=1) for each in range(128)]


class Stream:
    """One generation: each `step`, on the thread of the engine, generates one token for a prompt.

    over   whether it has ended or is cancelled
    used   number of tokens of the context that it occupies
    """

    def __init__(
        self,
        prompt: list[int],
        prompt_tokens: int,
        room: int,
        script: bytes,
        large: bool,
        sampling: Sampling,
        emit: Emit,
    ):
        self.over = False
        self.used = self._prompt_tokens = prompt_tokens
        self._script = script.upper() if large else script
        self._large = large
        self._sampling = sampling
        self._emit = emit
        self._most = min(room, sampling.max_tokens or room)
        self._ends_by_itself = bool(script) and not sampling.ignore_eos
        self._quick = is_plain(sampling)
        self._stops = StopStrings(sampling.stop) if sampling.stop else None
        self._count = 0
        self._given: Counter[int] = Counter()
        letters = [each for each in prompt if each < BOS and each in ALPHABET]
        self._place = ALPHABET.index(letters[-1]) if letters else -1  # of the letter before
        text = bytes(each % 256 for each in prompt)
        self._seed = (
            str(sampling.seed) + hashlib.blake2b(text, digest_size=8).hexdigest()
            if sampling.seed is not None
            else str(random.getrandbits(64))
        )
        self._bytes = b""  # of a character that is not complete

    def cancel(self) -> None:
        self.over = True

    def step(self) -> int:
        """Generate one token and emit an event for it. Return 1; do nothing and return 0 if it is over."""
        if self.over:
            return 0
        token, logprob = self._next()
        self._count += 1
        self.used += 1
        finish = ""
        if token == EOS or (
            token in self._sampling.stop_tokens and self._count > self._sampling.min_tokens
        ):
            finish = "stop"
        elif self._count >= self._most:
            finish = "length"
        if self._quick and not finish and self._stops is None and token < 128:
            self._emit(_PLAIN_EVENTS[token])
        else:
            self._report(token, logprob, finish)
        return 1

    def _next(self) -> tuple[int, Logprob | None]:
        """Return (next token, its Logprob; None if the request wants no logprobs)."""
        sampling, count = self._sampling, self._count
        ends = self._ends_by_itself and count >= sampling.min_tokens
        if count < len(self._script) or ends:
            token = self._script[count] if count < len(self._script) else EOS
            wanted = sampling.logprobs is not None
            return token, Logprob(token, _shown(token), 0.0) if wanted else None
        if self._quick:
            self._place = (self._place + 1) % len(ALPHABET)
            token, logprob = ALPHABET[self._place], None
        else:
            chances = chances_of(self._place, self._given, sampling)
            known = left(chances, sampling)
            token = drawn(known, self._seed, count) if sampling.temperature else known[0][0]
            logprob = None
            if sampling.logprobs is not None:
                logprob = logprob_of(token, chances, sampling.logprobs)
            if token in ALPHABET:  # a bias may choose another one
                self._place = ALPHABET.index(token)
            self._given[token] += 1
        if self._large:
            token = ord(chr(token).upper())
            if logprob is not None:
                logprob = logprob._replace(token=token, text=chr(token))
        return token, logprob

    def _report(self, token: int, logprob: Logprob | None, finish: str) -> None:
        text = ""
        ends = finish == "stop"  # the token that ends a text is not part of it
        if token < BOS and not ends:
            text = self._complete(token)
        if finish and self._bytes:
            text, self._bytes = text + self._bytes.decode(errors="replace"), b""
        if self._stops is not None and self._count > self._sampling.min_tokens:
            text = self._stops.feed(text)
            if self._stops.found:
                finish = "stop"
            elif finish:
                text += self._stops.end()
        self.over = self.over or bool(finish)
        self._emit(
            Event(
                text,
                (token,),
                (logprob,) if logprob is not None else (),
                finish,
                self._prompt_tokens,
                count=1,
                stop="" if self._stops is None else self._stops.found,
            )
        )

    def _complete(self, token: int) -> str:
        """Add a byte of the text. Return the text that it completes; "" while a character is incomplete.

        Bytes that are not UTF-8 become U+FFFD.
        """
        self._bytes += bytes((token,))
        try:
            text = self._bytes.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return ""
            text = self._bytes.decode(errors="replace")
        self._bytes = b""
        return text


def _shown(token: int) -> str:
    """Return the text of a token; "" for BOS and EOS, U+FFFD for a part of a character."""
    return "" if token >= BOS else bytes((token,)).decode(errors="replace")
