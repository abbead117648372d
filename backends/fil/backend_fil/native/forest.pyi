from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]

OF_EACH_NODE: tuple[str, ...]
LINKS: tuple[str, ...]
FORMS: tuple[str, ...]

class Forest:
    """A forest of decision trees that answers rows.

    One thread builds it: Forest(…), `add` for each tree in order, `finish`. After that it does not change,
    and its methods are thread-safe.
    """

    features: int
    classes: int
    has_cover: bool

    def __init__(self, features: int, classes: int, with_cover: bool = False) -> None:
        """with_cover   keep the training weight of each node, for Shapley values"""

    def add(self, fields: Mapping[str, npt.NDArray[Any]], class_id: int) -> None:
        """Copy one tree, without the GIL.

        fields     treelite's arrays by name, contiguous. `threshold`, `leaf_value` and `leaf_vector` are
                   float64; `cover` is float64 per node, or empty
        class_id   class to whose sum the tree adds, -1 if each leaf has a value for every class
        Raises ValueError for arrays that do not fit together, nodes that form no tree, an unknown feature or
        class, and a comparison other than <, <=, > and >=.
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
        """Set how sums of leaves become answers, and end the building. Call it after the last tree.

        link    one of LINKS: treelite's names of link functions
        form    one of FORMS: "values" of each class; "threshold": 1.0 above `threshold`, else 0.0; "argmax":
                the class with the largest value; "pair": 1 - p, p
        scale   factor of the sum of each class
        base    added to the scaled sum of each class, before the link function
        Raises ValueError for another name or number of classes.
        """

    def predict(self, rows: Rows, out: Rows, start: int, stop: int) -> None:
        """Write the answers of rows[start:stop] to out[start:stop]. Releases the GIL for larger parts.

        rows, out   contiguous float32, [n, features] and [n, width]
        Raises ValueError for other shapes or bounds.
        """

    def shap(self, rows: Rows, out: Rows, start: int, stop: int) -> None:
        """Write the Shapley values of the margins of rows[start:stop] to out[start:stop], without the GIL.

        out   [n, classes * (features + 1)]; the last value of each class is the expectation over all rows
        Raises ValueError for other shapes or bounds, and for a forest without covers.
        """

    @property
    def width(self) -> int:
        """Number of values that `predict` writes per row."""

    @property
    def trees(self) -> int: ...
    @property
    def depth(self) -> int:
        """Number of comparisons on the path to the deepest leaf."""

    @property
    def steps_of_a_row(self) -> float:
        """Approximate number of comparisons per row."""

    @property
    def is_narrow(self) -> bool:
        """Whether a node takes eight bytes. It takes 16 if columns or distances do not fit into 16 bits."""

    @property
    def nbytes(self) -> int:
        """Bytes of nodes, leaves, categories and covers."""
