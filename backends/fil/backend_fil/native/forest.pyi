from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]

OF_EACH_NODE: tuple[str, ...]
LINKS: tuple[str, ...]
FORMS: tuple[str, ...]

class Forest:
    """Trees in, answers out.

    Made by one thread: Forest(…), add for each tree in order, finish. After that it does not change, and any
    number of threads may ask at once.
    """

    features: int
    classes: int
    has_cover: bool

    def __init__(self, features: int, classes: int, with_cover: bool = False) -> None:
        """with_cover   keep the training weight of each node, for Shapley values"""

    def add(self, fields: Mapping[str, npt.NDArray[Any]], class_id: int) -> None:
        """Copy one tree, without the GIL.

        fields     treelite's arrays by its names, with `threshold` and `leaf_value` as float64, and `cover`:
                   float64 of each node, or empty; contiguous
        class_id   of the class that it adds to, -1 if each leaf has a value for every class
        Raises ValueError for arrays that do not fit together, nodes that form no tree, a feature or class
        that is not there, and a comparison that is neither <, <=, > nor >=.
        """

    def finish(
        self,
        *,
        link: str,
        form: str,
        scale: Sequence[float],
        base: Sequence[float],
        sigmoid_alpha: float = 1.0,
        ratio_c: float = 1.0,
        threshold: float = 0.5,
    ) -> None:
        """After the last tree: what becomes of the sums of leaves.

        link    one of LINKS: treelite's names of link functions
        form    one of FORMS: "values" of each class; "threshold": 1.0 above `threshold`, else 0.0; "argmax":
                the class with the largest value; "pair": 1 - p, p
        scale   by class: what a sum is multiplied with; base: what is added then, before the link
        Raises ValueError for another name or number of classes.
        """

    def predict(self, rows: Rows, out: Rows, start: int, stop: int) -> None:
        """Answer rows[start:stop] into out[start:stop]; releases the GIL unless there is little to do.

        rows, out   contiguous float32, [n, features] and [n, width]
        Raises ValueError for other shapes or bounds.
        """

    def shap(self, rows: Rows, out: Rows, start: int, stop: int) -> None:
        """Shapley values of the margins of rows[start:stop], without the GIL.

        out   [n, classes * (features + 1)]; the last of each class is what is expected of any row
        Raises ValueError for other shapes or bounds, and for a forest without covers.
        """

    @property
    def width(self) -> int:
        """Values of a row that predict writes."""

    @property
    def trees(self) -> int: ...
    @property
    def depth(self) -> int:
        """Comparisons on the way to the deepest leaf."""

    @property
    def steps_of_a_row(self) -> float:
        """Comparisons that a row takes, about."""

    @property
    def is_narrow(self) -> bool:
        """Whether a node takes eight bytes; it takes sixteen where columns and distances are too many."""

    @property
    def nbytes(self) -> int:
        """Memory of nodes, leaves, categories and covers."""
