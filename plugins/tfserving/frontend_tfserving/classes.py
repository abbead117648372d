"""What outputs mean for the methods classify and regress.

outputs of a model ─► [classes_of, values_of] ─► classes with scores, or one value, for each example
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import unsupported
from core.tensor import Tensor
from frontend_tfserving.types import is_numeric, numbers_of

if TYPE_CHECKING:
    from core.config import Signature

SCORES, CLASSES, VALUES = "scores", "classes", "outputs"
"""Names of outputs in TensorFlow's signatures for these methods."""

Classes = list[tuple[str, float]]


def classes_of(signature: Signature, outputs: Mapping[str, Tensor]) -> list[Classes]:
    """Return the (label, score) pairs of each example, in the order of the model.

    The model has outputs `scores` and `classes`, or only one of them, or one output of any name with the
    scores. Without an output `classes`, labels come from the label file of the output, else they are the
    numbers of the classes. Raises CoreError(UNSUPPORTED) for other models, and for `scores` and `classes` of
    different shapes.
    """
    scores, labels = outputs.get(SCORES), outputs.get(CLASSES)
    if scores is None and labels is None and len(outputs) == 1:
        (scores,) = outputs.values()
    if scores is None and labels is None:
        raise unsupported(
            f"model '{signature.name}' cannot classify: it has neither an output '{SCORES}' nor "
            f"'{CLASSES}', nor only one output; it has {', '.join(outputs)}"
        )
    texts = None if labels is None else _texts(signature, labels)
    if scores is None:
        assert texts is not None
        return [[(text, 0.0) for text in row] for row in texts]
    if not is_numeric(scores.dtype) or len(scores.shape) != 2:
        raise unsupported(
            f"model '{signature.name}' cannot classify: its output '{scores.name}' is "
            f"{scores.dtype.name}{list(scores.shape)}, expected numbers of shape [examples, classes]"
        )
    if labels is not None and labels.shape != scores.shape:
        raise unsupported(
            f"model '{signature.name}' cannot classify: its output '{CLASSES}' has the shape "
            f"{list(labels.shape)}, its output '{SCORES}' {list(scores.shape)}; expected equal shapes"
        )
    names = signature.outputs[scores.name].labels or ()
    return [
        [
            (texts[i][j] if texts is not None else _name(names, j), float(score))
            for j, score in enumerate(row)
        ]
        for i, row in enumerate(numbers_of(scores).tolist())
    ]


def values_of(signature: Signature, outputs: Mapping[str, Tensor]) -> list[float]:
    """Return the value of each example: the output `outputs`, or the only one, of shape [examples] or
    [examples, 1]. Raises CoreError(UNSUPPORTED) for other models.
    """
    found = outputs.get(VALUES)
    if found is None and len(outputs) == 1:
        (found,) = outputs.values()
    if found is None:
        raise unsupported(
            f"model '{signature.name}' cannot regress: it has neither an output '{VALUES}' nor only one "
            f"output; it has {', '.join(outputs)}"
        )
    shape = found.shape
    if not is_numeric(found.dtype) or not (len(shape) == 1 or shape[1:] == (1,)):
        raise unsupported(
            f"model '{signature.name}' cannot regress: its output '{found.name}' is "
            f"{found.dtype.name}{list(shape)}, expected one number for each example"
        )
    return [float(value) for value in numbers_of(found).ravel().tolist()]


def _texts(signature: Signature, labels: Tensor) -> list[list[str]]:
    if len(labels.shape) != 2:
        raise unsupported(
            f"model '{signature.name}' cannot classify: its output '{CLASSES}' has shape "
            f"{list(labels.shape)}, expected [examples, classes]"
        )
    return [
        [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in row]
        for row in labels.array.tolist()
    ]


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) and names[number] else str(number)
