"""Values of Python functions from tensors, and tensors from values.

The parameter FIELDS of config.pbtxt is JSON: name of an input or output → one of
    value  a number, bool or text          list   nested lists, of text as str
    array  a numpy array                   tensor a tensor of torch
    text   str          bytes  bytes       json   anything, from JSON
    frame  a pandas data frame, from JSON  image  an image of pillow, from a file's bytes
    file   the path of a temporary file with the bytes
A tensor that is not in FIELDS is a value if it has one element, else a list. An array or tensor in a STRING
is JSON.
"""

import io
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


def kinds_of(config):
    """Return name → kind for the inputs and outputs of a configuration, from the parameter FIELDS.

    A tensor that is not in FIELDS is of kind "value" if its dims are [1], else "list".
    """
    known = json.loads(config["parameters"]["FIELDS"]["string_value"])
    found = {}
    for each in [*config["input"], *config["output"]]:
        single = list(map(int, each["dims"])) == [1]
        found[each["name"]] = known.get(each["name"], "value" if single else "list")
    return found


def value_of(array, kind, folder=None):
    """Return the Python value of a tensor without batch dimension.

    folder   where a file is made for the kind "file"; the caller removes it
    Raises TritonModelException for an unknown kind.
    """
    if kind == "array":
        return array if array.dtype != np.object_ else np.array(json.loads(array.reshape(-1)[0]))
    if kind == "tensor":
        import torch

        return torch.as_tensor(np.array(value_of(array, "array")))
    if kind == "list":
        return decoded(array.tolist())
    element = array.reshape(-1)[0]
    if kind == "value":
        return element.decode() if isinstance(element, bytes) else element.item()
    if kind == "bytes":
        return element
    if kind == "text":
        return element.decode()
    if kind == "json":
        return json.loads(element)
    if kind == "frame":
        import pandas

        return pandas.DataFrame(json.loads(element))
    if kind == "image":
        from PIL import Image

        return Image.open(io.BytesIO(element))
    if kind == "file":
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(element)
        return Path(name)
    raise pb_utils.TritonModelException(f"parameter FIELDS has the unknown kind '{kind}'")


def decoded(values):
    """Return nested lists whose bytes are str."""
    if isinstance(values, list):
        return [decoded(each) for each in values]
    return values.decode() if isinstance(values, bytes) else values


def tensor_of(value, spec, kind, rows=None):
    """Return the tensor of an output.

    spec   the output in the configuration
    rows   how many elements of a batch `value` has; None without a batch dimension
    """
    dims = list(map(int, spec["dims"]))
    if spec["data_type"] != "TYPE_STRING":
        array = np.asarray(plain(value))
        wanted = pb_utils.triton_string_to_numpy(spec["data_type"])
        if not np.can_cast(array.dtype, wanted, "same_kind"):
            raise pb_utils.TritonModelException(
                f"output '{spec['name']}': the model gives {array.dtype}, config.pbtxt says "
                f"{spec['data_type']}"
            )
        array = array.astype(wanted, copy=False)
    elif kind == "list":
        array = np.array(plain(value), object)
        flat = [text_of(each) for each in array.reshape(-1)]
        array = np.array(flat, np.object_).reshape(array.shape)
    elif rows is None:
        array = np.array([text_of(value, kind)], np.object_)
    else:
        array = np.array([text_of(each, kind) for each in value], np.object_)
    rank = len(dims) + (rows is not None)
    while array.ndim < rank:
        array = array[..., np.newaxis]
    return pb_utils.Tensor(spec["name"], array)


def text_of(value, kind="text"):
    """Return the bytes of a value.

    Bytes stay as they are, and a path gives the content of its file. Text is encoded, unless `kind` is
    "json". For "image", an image of pillow is written in its own format, or as PNG. The rest becomes JSON.
    """
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, os.PathLike):
        return Path(value).read_bytes()
    if isinstance(value, str) and kind != "json":
        return value.encode()
    if kind == "image":
        buffer = io.BytesIO()
        value.save(buffer, format=value.format or "PNG")
        return buffer.getvalue()
    return json.dumps(plain(value)).encode()


def plain(value):
    """Return a value as JSON can hold it: arrays as lists, data frames as records, models as objects."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict(orient="records")
    if hasattr(value, "detach"):
        return value.detach().cpu().tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple, set)) else value


def error_of(error):
    """Return a response with an error: the `detail` of an HTTP exception, or else its type and text."""
    text = getattr(error, "detail", None) or f"{type(error).__name__}: {error}"
    return pb_utils.InferenceResponse([], pb_utils.TritonError(str(text)))
