"""Prepare: files or pixels ─► the tensors of a model."""

from __future__ import annotations

import numpy as np

from backend_image.decode import Decode
from backend_image.headers import NoPicture
from backend_image.nv12 import Nv12
from backend_image.shape import GEOMETRY, Geometry, Picture, Step
from backend_image.stage import Outputs, RequestStage, Tensor
from backend_image.tensor import ToTensor
from core import dtypes
from core.batch import Batch
from core.request import InferenceRequest

IMAGE = "image"


class Prepare(RequestStage):
    """Decodes, changes the size, and writes the tensors of all rows into the memory of the batch.

    decode   None: the input is UINT8[height, width, 3]. Its colours keep their order until `to_tensor`, when
             the picture is small
    nv12     whether that input is UINT8[3 · height / 2, width] instead
    """

    def __init__(
        self, decode: Decode | None, steps: list[Step], to_tensor: ToTensor, *, nv12: bool = False
    ):
        self._decode = decode
        self._nv12 = nv12
        self._steps = steps
        self._to_tensor = to_tensor
        sizes = [step.size for step in steps]
        self._size = sizes[-1] if sizes else None
        image = (
            Tensor(IMAGE, dtypes.UINT8, (-1, -1) if nv12 else (-1, -1, 3))
            if decode is None
            else Tensor(IMAGE, dtypes.BYTES, (1,))
        )
        height, width = self._size or (-1, -1)
        self.inputs = (image,)
        self.outputs = (
            Tensor(to_tensor.name, to_tensor.dtype, to_tensor.shape(height, width)),
            Tensor(GEOMETRY, dtypes.FP32, (6,)),
        )

    def execute(self, batch: Batch) -> Outputs | None:
        if self._size is None or not self.batched:
            return super().execute(batch)
        tensors = np.empty(
            (batch.rows, *self._to_tensor.shape(*self._size)), self._to_tensor.dtype.numpy
        )
        geometries = np.empty((batch.rows, 6), np.float32)
        errors: dict[int, str] = {}
        places, row = [], 0
        for i, request in enumerate(batch.requests):
            images = self.rows(request, IMAGE)
            places.append(slice(row, row + len(images)))
            for image in images:
                try:
                    picture, geometry = self._picture(image)
                except NoPicture as error:
                    errors.setdefault(i, str(error))
                else:
                    self._to_tensor(picture, tensors[row])
                    geometries[row] = geometry.array()
                row += 1
        outputs = {self._to_tensor.name: tensors, GEOMETRY: geometries}
        if not errors:
            return outputs
        for i, place in enumerate(places):
            if i in errors:
                batch.fail(i, self.refused(errors[i]))
            else:
                batch.respond(i, self.chosen({name: each[place] for name, each in outputs.items()}))
        return None

    def answer(self, request: InferenceRequest) -> Outputs:
        """Answer one request, whose pictures need not have a known size."""
        found: list[Outputs] = []
        for image in self.rows(request, IMAGE):
            picture, geometry = self._picture(image)
            shape = self._to_tensor.shape(*picture.shape[:2])
            if found and found[0][self._to_tensor.name].shape != shape:
                raise NoPicture(
                    f"the tensors of the pictures of one request have shapes "
                    f"{list(found[0][self._to_tensor.name].shape)} and {list(shape)}, they must be equal; "
                    "send them in requests of their own, or add a resize to image.json"
                )
            tensor = np.empty(shape, self._to_tensor.dtype.numpy)
            self._to_tensor(picture, tensor)
            found.append({self._to_tensor.name: tensor, GEOMETRY: geometry.array()})
        return self.joined(found)

    def _picture(self, image: np.ndarray) -> tuple[np.ndarray, Geometry]:
        """Return the picture of one row after the steps. Raises NoPicture."""
        picture: Picture
        if self._decode is not None:
            picture = self._decode(image.reshape(-1)[0])
        else:
            if not image.size:
                raise NoPicture(f"'{IMAGE}' of shape {list(image.shape)} has no pixel")
            picture = np.ascontiguousarray(image)
            if self._nv12:
                picture = Nv12(picture)
        geometry = Geometry(picture.shape[1], picture.shape[0])
        for step in self._steps:
            picture = step(picture, geometry)
        return picture.pixels() if isinstance(picture, Nv12) else picture, geometry
