"""Read a checkpoint of torch without torch: a zip file with a pickle and the bytes of each storage.

Only what the state of a model needs: dense tensors of numbers on the CPU. Nothing in the file is
executed; a name in the pickle that is not expected is refused.
"""

import collections
import pickle
import zipfile

import numpy as np

_TYPES = {
    "BoolStorage": "?",
    "ByteStorage": "u1",
    "CharStorage": "i1",
    "ShortStorage": "<i2",
    "IntStorage": "<i4",
    "LongStorage": "<i8",
    "HalfStorage": "<f2",
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
}


def read(path):
    """The tensors of a state dict as arrays, by name. Raises pickle.UnpicklingError for more."""
    with zipfile.ZipFile(path) as archive:
        (index,) = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        with archive.open(index) as file:
            return dict(_Unpickler(file, archive, index.removesuffix("data.pkl")).load())


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, archive, prefix):
        super().__init__(file)
        self._archive = archive
        self._prefix = prefix

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in _TYPES:
            return np.dtype(_TYPES[name])
        raise pickle.UnpicklingError(f"{module}.{name} is more than plain tensors need")

    def persistent_load(self, reference):
        """A storage: the elements of one or several tensors, in one row."""
        _, dtype, key, _, count = reference
        return np.frombuffer(self._archive.read(f"{self._prefix}data/{key}"), dtype, count)


def _tensor(storage, offset, size, stride, requires_grad, hooks):
    """torch._utils._rebuild_tensor_v2, as far as it concerns numbers."""
    width = storage.itemsize
    steps = [step * width for step in stride]
    # np.ndarray refuses a shape that reaches beyond the storage.
    return np.ndarray(size, storage.dtype, storage.tobytes(), offset * width, steps).copy()
