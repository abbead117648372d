"""A forest of treelite → a forest of ours: which trees there are, what becomes of their sums.

files ─► [reading] ─► model.  Nodes come out of treelite as arrays, a tree at a time, and are laid out by
compiled code: there is no loop over nodes here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import treelite

from backend_fil.native.forest import LINKS, Forest
from core.errors import CoreError, unsupported

DEEPEST_SHAP = 32  # as deep as a tree may be for Shapley values; NVIDIA's bound

_TASKS = ("binary classifier", "regressor", "multi-class classifier", "ranker", "isolation forest")
_CLASSIFIERS = (0, 2)
_AS_IT_IS = (
    "cleft",
    "cright",
    "split_index",
    "default_left",
    "node_type",
    "cmp",
    "leaf_vector_begin",
    "leaf_vector_end",
    "category_list",
    "category_list_begin",
    "category_list_end",
    "category_list_right_child",
)
_AS_DOUBLE = ("threshold", "leaf_value", "leaf_vector")
# treelite's name of a link function → ours, where they differ.
_LINK_NAMES = {"identity_multiclass": "identity"}


@dataclass(frozen=True)
class Description:
    """What a model file says of its forest as a whole.

    features     that a row must have
    classes      values of a row: 1 for a regressor or a binary classifier with one margin
    classifies   whether it was trained to tell classes apart
    has_vectors  whether each leaf has a value for every class
    link         the name of its link function, one of native.forest.LINKS
    trees        how many
    """

    features: int
    classes: int
    classifies: bool
    has_vectors: bool
    link: str
    trees: int

    @property
    def shap_dims(self) -> tuple[int, ...]:
        """Shape of the Shapley values of one row."""
        one = (self.features + 1,)
        return (self.classes, *one) if self.classes > 1 else one


def describe(model: treelite.Model, name: str) -> Description:
    """What the header of a treelite model says.

    Raises CoreError(UNSUPPORTED) for several targets, leaf vectors of another form, and link functions that
    are not known here.
    """
    header: Any = model.get_header_accessor()
    targets = int(header.get_field("num_target")[0])
    if targets != 1:
        raise unsupported(
            f"model '{name}' predicts {targets} targets; a forest here has one, so save one model for each"
        )
    classes = int(header.get_field("num_class")[0])
    vector = tuple(int(size) for size in header.get_field("leaf_vector_shape"))
    if vector not in ((1, 1), (1, classes)):
        raise unsupported(
            f"model '{name}': its leaves have values of shape {list(vector)} for {classes} classes; "
            "there must be one for each class, or one"
        )
    task = int(header.get_field("task_type")[0])
    link = _text(header.get_field("postprocessor"))
    link = _LINK_NAMES.get(link, link)
    if link not in LINKS:
        raise unsupported(
            f"model '{name}' (a {_TASKS[task]}) has the link function '{link}'; "
            f"treelite {treelite.__version__} is newer than this backend, which knows {', '.join(LINKS)}"
        )
    return Description(
        features=int(model.num_feature),
        classes=classes,
        classifies=task in _CLASSIFIERS,
        has_vectors=vector == (1, classes) and classes > 1,
        link=link,
        trees=int(model.num_tree),
    )


def read_forest(
    model: treelite.Model,
    description: Description,
    name: str,
    *,
    link: str,
    form: str,
    threshold: float,
    with_cover: bool,
) -> Forest:
    """Every tree of a treelite model, laid out for walking.

    link, form, threshold   of the answers; see native.forest.Forest.finish
    with_cover              whether Shapley values will be asked for
    Raises CoreError(UNSUPPORTED) for a tree that cannot be: a comparison that is none of <, <=, >, >=,
    nodes that form no tree, or no covers where Shapley values are wanted.
    """
    header: Any = model.get_header_accessor()
    forest = Forest(description.features, description.classes, with_cover)
    of_class = header.get_field("class_id").tolist()
    tree_counts = np.zeros(description.classes)
    for i, class_id in enumerate(of_class):
        class_id = -1 if description.has_vectors else max(0, class_id)  # -1 also of a single class
        accessor = model.get_tree_accessor(i)
        try:
            forest.add(_fields(accessor, with_cover, name, i), class_id)
        except ValueError as error:
            raise unsupported(
                f"model '{name}': tree {i} of {len(of_class)} cannot be served: {error}; "
                f"treelite {treelite.__version__} read it"
            ) from error
        tree_counts[slice(None) if class_id < 0 else class_id] += 1
    averages = bool(header.get_field("average_tree_output")[0])
    scale = 1 / np.maximum(tree_counts, 1) if averages else np.ones(description.classes)
    forest.finish(
        link=link,
        form=form,
        scale=scale.tolist(),
        base=header.get_field("base_scores").tolist(),
        sigmoid_alpha=float(header.get_field("sigmoid_alpha")[0]),
        ratio_c=float(header.get_field("ratio_c")[0]),
        threshold=threshold,
    )
    return forest


def _fields(accessor: Any, with_cover: bool, name: str, i: int) -> dict[str, Any]:
    """The arrays of a tree. Those of treelite are views into it, valid as long as its model."""
    fields = {each: accessor.get_field(each) for each in _AS_IT_IS}
    for each in _AS_DOUBLE:
        fields[each] = accessor.get_field(each).astype(np.float64)
    fields["cover"] = _covers(accessor, name, i) if with_cover else np.empty(0)
    return fields


def _covers(accessor: Any, name: str, i: int) -> Any:
    """The training weight of each node: the sum of hessians or sample weights, or else a count of rows."""
    nodes = len(accessor.get_field("cleft"))
    for each in ("sum_hess", "data_count"):
        present = accessor.get_field(f"{each}_present")
        if len(present) == nodes and present.all():
            return accessor.get_field(each).astype(np.float64)
    raise _no_covers(name, i)


def _no_covers(name: str, i: int) -> CoreError:
    return unsupported(
        f"model '{name}': tree {i} does not say how many rows of the training came to its nodes, without "
        "which there are no Shapley values; take the output 'treeshap_output' out of config.pbtxt, or save "
        "the model again with its statistics"
    )


def _text(field: Any) -> str:
    return field if isinstance(field, str) else field.tobytes().decode()
