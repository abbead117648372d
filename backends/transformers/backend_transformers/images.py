"""ImageEngine: classes of images.

files ─► read_image ─► image processor ─► Batcher ─► [ImageEngine] ─► the model ─► a score of each class
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import torch
from core_generate import Engine, Status

from backend_transformers.batching import Batcher
from backend_transformers.generation import failed
from backend_transformers.image_files import TooLargeImage, UnreadableImage, read_image
from backend_transformers.loading import LoadedImages
from backend_transformers.scoring import class_scores
from backend_transformers.settings import MEGAPIXELS, MEGAPIXELS_UNRESIZED, Settings
from core.errors import cancelled, invalid

_MOST_IMAGES = 1024  # of one request
_CHANNELS = 3  # numbers of a pixel


class PreparedImage(NamedTuple):
    """What the image processor makes of one image.

    tensors   name → array without a dimension for the batch; most models have `pixel_values` only
    shapes    of all tensors. Images of equal shapes can be one batch
    size      numbers in all tensors
    """

    tensors: Mapping[str, Any]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    size: int


class ImageEngine(Engine):
    """Classifies images of all requests together, on a thread of its own.

    The threads of the requests decode and prepare images, at most `Settings.threads` at the same time: each
    image needs up to 16 bytes for each of its pixels meanwhile. A request holds one batch of prepared images:
    at most `Settings.batch`, and no further one once they have as many numbers as one image may have.

    labels   names of the classes
    bytes    size of the weights
    """

    def __init__(self, loaded: LoadedImages, settings: Settings):
        self.most = settings.slots
        self.supports = settings.supports
        self.labels = settings.labels
        self.bytes = loaded.bytes
        self._settings = settings
        self._module = loaded.module
        self._processor = loaded.processor
        resizes = _resizes(loaded.processor)
        default = MEGAPIXELS if resizes else MEGAPIXELS_UNRESIZED
        self._most_pixels = settings.most_pixels or default * 1_000_000
        self._why = "" if resizes else "; the image processor of this model does not resize images"
        self._decoding = threading.Semaphore(settings.threads)
        self._batcher = Batcher(
            self._compute,
            order=lambda image: image.shapes,
            together=self._together,
            threads=settings.threads,
        )

    def classify(self, files: Sequence[bytes], stopped: Callable[[], bool]) -> Any:
        """Return the score of each class, FP32[images, classes]. Blocks. Any thread.

        files     PNG, JPEG or WebP, or their base64 form
        stopped   whether the request is cancelled; asked after each image, before it is computed
        Raises CoreError(INVALID) with the number of an image that is refused, and CoreError(CANCELLED).
        """
        if len(files) > _MOST_IMAGES:
            raise invalid(
                f"the input 'image' has {len(files)} images, at most {_MOST_IMAGES} are allowed; send "
                "several requests"
            )
        found = [np.zeros((0, len(self.labels)), np.float32)]
        prepared: list[PreparedImage] = []
        for i, file in enumerate(files):
            prepared.append(self._prepared(i, file))
            if stopped():
                raise cancelled()
            if i + 1 == len(files) or not self._has_room(prepared):
                found.append(self._batcher.rows(prepared))
                prepared = []
        return np.concatenate(found)

    def status(self) -> Status:
        return Status(*self._batcher.counts())

    def close(self) -> None:
        self._batcher.close()

    def _has_room(self, images: Sequence[PreparedImage]) -> bool:
        """Return whether one more image belongs to the batch of these."""
        size = sum(each.size for each in images)
        return len(images) < self._settings.batch and size < _CHANNELS * self._most_pixels

    def _prepared(self, number: int, file: bytes) -> PreparedImage:
        with self._decoding:
            try:
                image = read_image(file, self._most_pixels)
            except TooLargeImage as refused:
                raise invalid(f"image {number} {refused}{self._why}") from None
            except UnreadableImage as refused:
                raise invalid(f"image {number} {refused}") from None
            try:
                found = self._processor(images=image, return_tensors="np")
            except Exception as error:
                raise failed(error) from error
        tensors = {name: np.asarray(each)[0] for name, each in found.items()}
        shapes = tuple((name, each.shape) for name, each in tensors.items())
        return PreparedImage(tensors, shapes, sum(each.size for each in tensors.values()))

    # on the thread of the batcher -------------------------------------------

    def _together(self, images: Sequence[PreparedImage]) -> int:
        alike = takewhile(lambda image: image.shapes == images[0].shapes, images)
        most = _CHANNELS * self._most_pixels // max(1, images[0].size)
        return min(self._settings.batch, most, sum(1 for _ in alike))

    def _compute(self, images: Sequence[PreparedImage]) -> Any:
        given = {
            name: self._tensor([image.tensors[name] for image in images])
            for name in images[0].tensors
        }
        logits = self._module(**given).logits.float()
        return class_scores(self._module.config, logits).cpu().numpy()

    def _tensor(self, rows: Sequence[Any]) -> Any:
        found = torch.from_numpy(np.stack(rows)).to(self._module.device)
        return found.to(self._module.dtype) if found.is_floating_point() else found


def _resizes(processor: Any) -> bool:
    """Return whether the size of what the model reads is that of the processor, and not that of the image."""
    flags = [getattr(processor, name, None) for name in ("do_resize", "do_center_crop")]
    return any(flags) or all(each is None for each in flags)
