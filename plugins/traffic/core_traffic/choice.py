"""Choice: the version that answers a request. Sequences: the versions where sequences have begun.

Front ─► [Sequences] ─► [Choice]: a rule, else a sticky version, else a draw by weight
"""

from __future__ import annotations

import math
import random
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection
from hashlib import blake2b
from itertools import accumulate

from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core_traffic.settings import Traffic

MOST_SEQUENCES = 100_000  # of a model, that are remembered
_MOST_FORGOTTEN = 100  # sequences, by one request
_LEAST_IDLE_S = 60.0  # a sequence is remembered for at least this time after its last request
_LONGEST_ID = 64  # characters; of a longer id, its digest is remembered


class Choice:
    """Chooses by the settings of a model. Event loop only.

    versions   that serve; others get nothing, and the shares of the others grow in proportion
    salt       makes sticky choices of models independent
    draw       returns a random number from 0 to 1, without 1
    """

    def __init__(
        self,
        traffic: Traffic,
        versions: Collection[int],
        salt: str,
        draw: Callable[[], float] = random.random,
    ):
        weights = {
            number: weight
            for number, weight in sorted(traffic.weights.items())
            if weight and number in versions
        }
        self._rules = [rule for rule in traffic.rules if rule.version in versions]
        self._sticky = traffic.sticky
        self._salt = salt.encode()
        self._draw = draw
        self._numbers = list(weights)
        self._bounds = list(accumulate(weights.values()))
        self._total = self._bounds[-1] if weights else 0.0
        self.shares = {number: weight / self._total for number, weight in weights.items()}

    def of(self, request: InferenceRequest) -> int | None:
        """Return the version for a request; None if no version with a weight serves."""
        for rule in self._rules:
            if rule.fits(request):
                return rule.version
        if len(self._numbers) < 2:
            return self._numbers[0] if self._numbers else None
        if self._sticky is not None and (text := self._sticky.of(request)):
            return self._sticky_version(text)
        at = bisect_right(self._bounds, self._draw() * self._total, hi=len(self._bounds) - 1)
        return self._numbers[at]

    def _sticky_version(self, text: str) -> int:
        """Return the version of a text by weighted rendezvous hashing.

        When the weight of one version grows, texts move to that version only.
        """

        def cost(number: int) -> float:
            key = f"{number} {text}".encode(errors="surrogatepass")
            digest = blake2b(key, digest_size=8, key=self._salt[:64])
            point = (int.from_bytes(digest.digest(), "big") + 0.5) / 2**64
            return -math.log(point) / self.shares[number]

        return min(self._numbers, key=cost)


class Sequences:
    """The versions of the sequences of one model. Event loop only.

    idle_s   returns the longest pause between two requests of a sequence that the configuration allows now
    """

    def __init__(self, idle_s: Callable[[], float], clock: Callable[[], float] = time.monotonic):
        self._idle_s = idle_s
        self._clock = clock
        # `_key` of a sequence → (version, time of its last request), in the order of these times.
        self._begun: OrderedDict[int | str | bytes, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._begun)

    def version_of(
        self,
        request: InferenceRequest,
        choose: Callable[[InferenceRequest], int | None],
        versions: Collection[int],
    ) -> int | None:
        """Return the version where the sequence of a request has begun; what `choose` returns for a new one.

        versions   that serve. A sequence whose version is gone is new: its next version will refuse a
                   request without the flag of a start
        """
        now = self._clock()
        self._forget(now)
        key = _key(request.correlation_id)
        begun = self._begun.pop(key, None)
        starts = bool(request.flags & SEQUENCE_START)
        goes_on = begun is not None and not starts and begun[0] in versions
        number = begun[0] if goes_on and begun is not None else choose(request)
        if number is not None and (starts or goes_on) and not request.flags & SEQUENCE_END:
            self._begun[key] = (number, now)
        return number

    def _forget(self, now: float) -> None:
        """Drop sequences that have paused for too long, and the oldest ones if there are too many.

        At most _MOST_FORGOTTEN of them: other requests wait meanwhile.
        """
        idle_s = 0.0
        for _ in range(_MOST_FORGOTTEN):
            if not self._begun:
                return
            first = next(iter(self._begun))
            paused_s = now - self._begun[first][1]
            if len(self._begun) < MOST_SEQUENCES:
                if paused_s < _LEAST_IDLE_S:
                    return
                idle_s = idle_s or self._idle_s()
                if paused_s < 2 * idle_s:
                    return
            del self._begun[first]


def _key(id: int | str) -> int | str | bytes:
    """Return what identifies a sequence, in bounded size: clients choose ids as long as a body."""
    if isinstance(id, int) or len(id) <= _LONGEST_ID:
        return id
    return blake2b(id.encode(errors="surrogatepass"), digest_size=16).digest()
