"""Serves the MLflow model in source/ with mlflow.pyfunc.

request ─► data frame, array or dict of arrays, as the signature says ─► predict ─► outputs

Each request is one call of predict. Without a signature, `input` and `output` are JSON.
"""

import json
import os

import mlflow.pyfunc
import numpy as np
import pandas
import triton_python_backend_utils as pb_utils

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "source")


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        self.model = mlflow.pyfunc.load_model(SOURCE)
        signature = self.model.metadata.signature
        self.inputs = signature.inputs if signature is not None else None
        params = signature.params.params if signature is not None and signature.params else []
        self.params = {each.name: each for each in params}

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        try:
            arrays = {each.name(): each.as_numpy() for each in request.inputs()}
            params = {
                name: scalar(arrays.pop(name)) for name in list(arrays) if name in self.params
            }
            answer = self.model.predict(self.data(arrays), params=params or None)
            return pb_utils.InferenceResponse(self.outputs(answer))
        except Exception as error:
            return pb_utils.InferenceResponse(
                [], pb_utils.TritonError(f"{type(error).__name__}: {error}")
            )

    def data(self, arrays):
        """Return the argument of `predict`: a data frame, an array, or a dict of arrays."""
        if self.inputs is None:
            return from_json(json.loads(arrays["input"].reshape(-1)[0]))
        if self.inputs.is_tensor_spec():
            if not self.inputs.has_input_names():
                return texts(next(iter(arrays.values())))
            return {name: texts(array) for name, array in arrays.items()}
        names = self.inputs.input_names()
        columns = {
            spec.name or names[i]: column(arrays[spec.name or "input"], spec.type)
            for i, spec in enumerate(self.inputs.inputs)
            if (spec.name or "input") in arrays
        }
        return pandas.DataFrame(columns)

    def outputs(self, answer):
        """Return a tensor for each output of the configuration, from the result of `predict`.

        Without a signature, the only output is JSON. Raises TritonModelException if the result does not have
        the outputs.
        """
        specs = self.config["output"]
        if self.inputs is None:
            return [tensor(specs[0], json.dumps(plain(answer)))]
        if isinstance(answer, pandas.DataFrame) and len(specs) == len(answer.columns):
            named = {str(name) for name in answer.columns} == {each["name"] for each in specs}
            keys = [each["name"] for each in specs] if named else list(answer.columns)
            return [tensor(each, answer[key].to_numpy()) for each, key in zip(specs, keys)]
        if isinstance(answer, dict) and {each["name"] for each in specs} <= set(answer):
            return [tensor(each, answer[each["name"]]) for each in specs]
        if len(specs) == 1:
            return [tensor(specs[0], answer)]
        raise pb_utils.TritonModelException(
            f"predict returned a {type(answer).__name__} for the outputs "
            f"{', '.join(each['name'] for each in specs)}"
        )


def scalar(array):
    """Return the array's only element, or a list of its elements, as a parameter of `predict`."""
    values = [
        each.decode() if isinstance(each, bytes) else each for each in array.reshape(-1).tolist()
    ]
    return values[0] if len(values) == 1 else values


def texts(array):
    """Return an array of bytes as an array of str, and any other array unchanged."""
    if array.dtype != np.object_:
        return array
    return np.array([each.decode() for each in array.reshape(-1)], object).reshape(array.shape)


def column(array, kind):
    """Return the values of one column, as its type in the signature says."""
    name = getattr(kind, "name", "")
    values = array.reshape(-1)
    if name == "binary":
        return list(values)
    if name == "datetime":
        return pandas.to_datetime([each.decode() for each in values])
    if name == "string":
        return [each.decode() for each in values]
    if values.dtype == np.object_:  # an array, object or map
        return [json.loads(each) for each in values]
    return values


def from_json(document):
    """Return the argument of `predict` for a JSON request of MLflow's /invocations.

    It is a data frame, an array, or a dict of arrays. Raises TritonModelException for an unknown form.
    """
    if "dataframe_split" in document:
        return pandas.DataFrame(**document["dataframe_split"])
    if "dataframe_records" in document:
        return pandas.DataFrame(document["dataframe_records"])
    found = document.get("instances", document.get("inputs"))
    if found is None:
        raise pb_utils.TritonModelException(
            "input has none of dataframe_split, dataframe_records, instances, inputs"
        )
    if isinstance(found, dict):
        return {name: np.array(values) for name, values in found.items()}
    return pandas.DataFrame(found) if found and isinstance(found[0], dict) else np.array(found)


def plain(answer):
    """Return an answer as JSON can hold it: a data frame as records, arrays as lists, also in containers."""
    if isinstance(answer, pandas.DataFrame):
        return json.loads(answer.to_json(orient="records"))
    if hasattr(answer, "tolist"):
        return answer.tolist()
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items()}
    return [plain(each) for each in answer] if isinstance(answer, (list, tuple)) else answer


def tensor(spec, values):
    """Return values as the tensor that an output of the configuration describes.

    Elements that are not text become JSON in a STRING. Dimensions of size 1 are added or removed at the end.
    Raises TypeError for values that the datatype cannot hold.
    """
    array = np.asarray(values)
    if spec["data_type"] == "TYPE_STRING":
        flat = array.reshape(-1).tolist()
        encoded = [each if isinstance(each, bytes) else text_of(each).encode() for each in flat]
        array = np.array(encoded, np.object_).reshape(array.shape)
    else:
        array = array.astype(
            pb_utils.triton_string_to_numpy(spec["data_type"]), casting="same_kind"
        )
    rank = len(spec["dims"])
    while array.ndim < rank:
        array = array[..., np.newaxis]
    while array.ndim > rank and array.shape[-1] == 1:
        array = array[..., 0]
    return pb_utils.Tensor(spec["name"], array)


def text_of(value):
    return value if isinstance(value, str) else json.dumps(plain(value))
