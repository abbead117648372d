"""execute: the frames of several streams ─► their tracks."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_tracker.live_streams import LiveStreams
from backend_tracker.native.streams import LOST, Stream, Streams, wrong_box, wrong_score
from backend_tracker.tensors import BOXES, CLASSES, IDS, SCORES, STATES
from core import dtypes
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import CoreError, invalid
from core.request import InferenceRequest

if TYPE_CHECKING:
    from backend_tracker.backend import TrackerModel

Answer = list[Any]

MOST_DETECTIONS = 10_000  # of a frame
MOST_PAIRS = 4_000_000  # of a detection and a track; a frame with so many takes some hundred ms


def patience_s(idle_s: float) -> float:
    """Return how long a stream is kept without frames, in seconds: longer than the server keeps it."""
    return 2 * idle_s + 1


class TrackerInstance(ModelInstance):
    """Tracks the frames of its sequences. Without sequence_batching, each row is a stream of one frame."""

    model: TrackerModel
    placement = "auto"  # a frame takes some microseconds, and any thread may track it

    def open(self) -> None:
        model = self.model
        config = model.config
        self._streams = Streams(model.settings)
        self._stateful = config.HasField("sequence_batching")
        self._batched = config.max_batch_size > 0
        self._outputs = frozenset(each.name for each in config.output)
        self._patience_s = patience_s(config.sequence_batching.max_sequence_idle_microseconds / 1e6)
        self._live = LiveStreams(self._patience_s, self._streams.begin)
        self._sweep: asyncio.TimerHandle | None = None
        self._swept = False  # whether a sweep is planned
        self._closed = False

    def execute(self, batch: Batch) -> None:
        now_s = time.monotonic()
        self._live.forget_idle(now_s)
        answers: list[Answer] = []
        for i, request in enumerate(batch.requests):
            try:
                answers.append(self._answer(request, now_s))
            except CoreError as error:
                batch.fail(i, error)
                answers.append([])
        batch.respond_all(answers)
        if not self._swept and len(self._live):
            self._swept = True
            self.loop.call_soon_threadsafe(self._sweep_later)

    def _answer(self, request: InferenceRequest, now_s: float) -> Answer:
        stream = None
        # A row that only fills a batch of the strategy `direct` has no correlation id.
        if self._stateful and request.correlation_id:
            stream = self._live.of(request, now_s)
        boxes, scores, classes = self._tensors(request)
        if not self._batched:
            return self._tracks(stream, boxes, scores, classes)
        rows = [self._tracks(stream, *each) for each in zip(boxes, scores, classes, strict=True)]
        if len(rows) == 1:
            return [(name, number, array[None]) for name, number, array in rows[0]]
        return [
            (name, number, np.stack([row[i][2] for row in rows]))
            for i, (name, number, _) in enumerate(rows[0])
        ]

    def _tracks(
        self, stream: Stream | None, boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray
    ) -> Answer:
        """Track one frame: boxes FP32[n, 4], scores FP32[n], classes INT32[n]."""
        stream = self._streams.begin() if stream is None else stream
        if len(boxes) > MOST_DETECTIONS:
            raise self._refused(
                f"a frame has {len(boxes)} detections; at most {MOST_DETECTIONS} are tracked: drop those "
                "of low scores"
            )
        if len(boxes) * len(stream) > MOST_PAIRS:
            raise self._refused(
                f"a frame has {len(boxes)} detections and its stream {len(stream)} tracks; their product "
                f"may be at most {MOST_PAIRS}: drop detections of low scores, or start the sequence again"
            )
        ids, states, lost = self._streams.update(stream, boxes, scores, classes)
        if lost is not None:
            ids = np.concatenate([ids, lost[0]])
            boxes = np.concatenate([boxes, lost[1]])
            scores = np.concatenate([scores, lost[2]])
            classes = np.concatenate([classes, lost[3]])
            states = np.concatenate([states, np.full(len(lost[0]), LOST, np.int32)])
        found = (
            (IDS, dtypes.INT64.number, ids),
            (BOXES, dtypes.FP32.number, boxes),
            (SCORES, dtypes.FP32.number, scores),
            (CLASSES, dtypes.INT32.number, classes),
            (STATES, dtypes.INT32.number, states),
        )
        return [each for each in found if each[0] in self._outputs]

    def _tensors(self, request: InferenceRequest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return copies of boxes, scores and classes of a request: the answer contains them.

        Raises CoreError(INVALID) for wrong boxes or scores, and for another number of them.
        """
        inputs = request.inputs
        boxes = np.array(inputs[BOXES].array, np.float32, order="C")
        shape = boxes.shape[:-1]
        found = []
        for name, dtype, default in ((SCORES, np.float32, 1), (CLASSES, np.int32, 0)):
            if name in inputs:
                array = np.array(inputs[name].array, dtype, order="C")
                if array.shape != shape:
                    raise self._refused(
                        f"'{name}' has shape {list(array.shape)} and '{BOXES}' has {list(boxes.shape)}; "
                        f"each box needs one of {name}, so it must be {list(shape)}"
                    )
            else:
                array = np.full(shape, default, dtype)
            found.append(array)
        self._check(boxes.reshape(-1, 4), found[0].reshape(-1))
        return boxes, found[0], found[1]

    def _check(self, boxes: np.ndarray, scores: np.ndarray) -> None:
        if (i := wrong_box(boxes)) >= 0:
            raise self._refused(
                f"box {i} is {boxes[i].tolist()}; it must be x1, y1, x2, y2, finite, with x1 <= x2 "
                "and y1 <= y2"
            )
        if (i := wrong_score(scores)) >= 0:
            raise self._refused(f"score {i} is {scores[i]:g}; it must be a number from 0 to 1")

    def _refused(self, text: str) -> CoreError:
        return invalid(f"model '{self.model.name}': {text}")

    def _sweep_later(self) -> None:
        """Plan to forget idle streams if no request comes. The loop of a child process does not run."""
        if not self._closed:
            self._sweep = self.loop.call_later(self._patience_s, self._sweep_now)

    def _sweep_now(self) -> None:
        self._swept = False  # before the look: execute may add a stream meanwhile
        self._live.forget_idle(time.monotonic())
        if len(self._live):
            self._swept = True
            self._sweep_later()

    def close(self) -> None:
        self._closed = True
        self._live = LiveStreams(0, self._streams.begin)
        sweep, self._sweep = self._sweep, None
        if sweep is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(sweep.cancel)
