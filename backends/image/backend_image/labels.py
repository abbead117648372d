"""The names of classes, from a file beside a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backend_image.options import Options
from core.errors import invalid


def read_labels(folder: Path, options: Options) -> list[bytes] | None:
    """Return the lines of the file that the option `labels` names, in the version folder or beside it.

    None without the option. Raises CoreError(INVALID) if the file cannot be read.
    """
    name = options.text("labels")
    if not name:
        return None
    if Path(name).name != name:
        raise options.wrong(
            "labels", "the name of a file in the folder of the version or of the model"
        )
    for place in (folder / name, folder.parent / name):
        try:
            return [line.strip() for line in place.read_bytes().splitlines()]
        except FileNotFoundError:
            continue
        except OSError as error:
            raise invalid(f"'{place}' cannot be read: {error}") from error
    raise options.wrong("labels", f"the name of a file in '{folder}' or '{folder.parent}'")


def labels_of(classes: np.ndarray, labels: Sequence[bytes]) -> np.ndarray:
    """Return the label of each class as an array of bytes; the number of a class without a label."""
    found: Any = np.empty(classes.shape, object)
    found.ravel()[:] = [
        labels[number] if 0 <= number < len(labels) else str(number).encode()
        for number in classes.ravel().tolist()
    ]
    return np.asarray(found)
