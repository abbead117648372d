from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]

OF_EACH_NODE: tuple[str, ...]
LINKS: tuple[str, ...]
FORMS: tuple[str, ...]

class Forest:
    """A forest of decision trees, which predicts rows and computes their Shapley values.

    One thread builds it: Forest(…), `add` for each tree in order, `finish`. After that it must not change,
    and `predict` and `shap` are thread-safe.

    features    number of features of a row
    classes     number of sums of leaves per row: one for each class
    has_cover   whether it was made with covers, which `shap` needs
    """

    features: int
    classes: int
    has_cover: bool

    def __init__(self, features: int, classes: int, with_cover: bool = False) -> None:
        """Create a forest without trees. Raises ValueError for less than one feature or class.

        with_cover   keep the training weight (cover) of each node, for `shap`
        """

    def add(self, fields: Mapping[str, npt.NDArray[Any]], class_id: int) -> None:
        """Add a copy of one tree. The copy releases the GIL.

        fields     treelite's arrays by name, contiguous. `threshold`, `leaf_value` and `leaf_vector` are
                   float64; `cover` is float64 per node, or empty
        class_id   class to whose sum the leaves add; -1 if each leaf has a value for every class
        Raises ValueError for arrays that do not fit together, nodes that do not form a tree, an unknown
        feature or class, a comparison other than <, <=, > and >=, and a finished forest.
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
        """Set how sums of leaves become predictions, and complete the forest. Call it once, after all trees.

        link    one of LINKS: treelite's names of link functions, applied to the margins (see `base`)
        form    one of FORMS, with values after the link function. "values": one per class; "threshold": 1.0
                if the first is above `threshold`, else 0.0; "argmax": the index of the largest; "pair": the
                one value p as 1 - p, p
        scale   factor of the sum of each class
        base    added to the scaled sum of each class, before the link function
        sigmoid_alpha, ratio_c   parameters of link functions, as in treelite
        Raises ValueError for an unknown link or form, and unless there are `classes` scales and bases.
        """

    def predict(self, rows: Rows, out: Rows, start: int, stop: int) -> None:
        """Write the predictions of rows[start:stop] to out[start:stop]. Releases the GIL for larger parts.

        rows, out   contiguous float32, [n, features] and [n, width]
        Raises ValueError for other shapes or bounds, and before `finish`.
        """

    def shap(self, rows: Rows, out: Rows, start: int, stop: int) -> None:
        """Write the Shapley values of rows[start:stop] to out[start:stop], without the GIL.

        They divide the margin of each class, its value before the link function, among the features.
        rows   contiguous float32, [n, features]
        out    contiguous float32, [n, classes * (features + 1)]: for each class a value per feature, then the
               expected margin over the training rows
        The caller checks that `depth` is at most 32. Raises ValueError for other shapes or bounds, before
        `finish`, and for a forest without covers.
        """

    @property
    def width(self) -> int:
        """Number of values that `predict` writes per row."""

    @property
    def trees(self) -> int: ...
    @property
    def depth(self) -> int:
        """Number of comparisons on the longest path from a root to a leaf."""

    @property
    def steps_of_a_row(self) -> float:
        """Approximate number of comparisons to predict one row, over all trees."""

    @property
    def is_narrow(self) -> bool:
        """Whether a node takes eight bytes, after `finish`. Else it takes 16, as in very large forests."""

    @property
    def nbytes(self) -> int:
        """Size of nodes, leaf vectors, categories and covers in bytes."""
