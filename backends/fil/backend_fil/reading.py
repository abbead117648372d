"""Convert a treelite model to a native Forest: its trees, and the conversion of their sums.

files ─► [reading] ─► model.  treelite returns the nodes of a tree as arrays, and compiled code places them:
this module has no loop over nodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import treelite

from backend_fil.catboost.building import THRESHOLD
from backend_fil.native.forest import LINKS, Forest
from backend_fil.settings import Settings
from core.config import ModelConfig
from core.errors import unsupported

DEEPEST_SHAP = 32  # maximum depth of a tree for Shapley values; NVIDIA's limit

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
# treelite's name of a link function → the name in LINKS, if they differ.
_LINK_NAMES = {"identity_multiclass": "identity"}


@dataclass(frozen=True)
class Description:
    """The header of a model file.

    features     number of values in an input row
    classes      sums per row: 1 for a regressor or a binary classifier with one margin
    classifies   whether the training task is a classification
    has_vectors  whether each leaf has a value for every class
    link         name of the link function, one of native.forest.LINKS
    trees        number of trees
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
    """Return the description of a treelite model.

    Raises CoreError(UNSUPPORTED) for several targets, leaf vectors of another form, and unknown link
    functions.
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
    link = header.get_field("postprocessor")
    link = link if isinstance(link, str) else link.tobytes().decode()
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


def threshold_of(model: treelite.Model, config: ModelConfig, settings: Settings) -> float:
    """Return the probability above which class 1 is predicted: the parameter, else that of the file."""
    if "threshold" in config.parameters:
        return settings.threshold
    attributes = model.get_header_accessor().get_field("attributes")
    text = attributes if isinstance(attributes, str) else attributes.tobytes().decode()
    # Files of XGBoost have attributes of their users, which are not parsed.
    if THRESHOLD not in text:
        return settings.threshold
    return float(json.loads(text).get(THRESHOLD, settings.threshold))


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
    """Return a Forest with every tree of a treelite model.

    link, form, threshold   of the answers; see native.forest.Forest.finish
    with_cover              whether the model has an output of Shapley values
    Raises CoreError(UNSUPPORTED) for a comparison other than <, <=, > and >=, for nodes that form no tree,
    and for a tree without covers if `with_cover`.
    """
    header: Any = model.get_header_accessor()
    forest = Forest(description.features, description.classes, with_cover)
    of_class = header.get_field("class_id").tolist()
    tree_counts = np.zeros(description.classes)
    for i, class_id in enumerate(of_class):
        # treelite also has -1 for a single class.
        class_id = -1 if description.has_vectors else max(0, class_id)
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
    """Return the arrays of a tree. Some are views into the treelite model, which must outlive them."""
    fields = {each: accessor.get_field(each) for each in _AS_IT_IS}
    for each in _AS_DOUBLE:
        fields[each] = accessor.get_field(each).astype(np.float64)
    fields["cover"] = _covers(accessor, name, i) if with_cover else np.empty(0)
    return fields


def _covers(accessor: Any, name: str, i: int) -> Any:
    """Return the training weight of each node: the sum of hessians or sample weights, else a count of rows.

    Raises CoreError(UNSUPPORTED) if the tree has none of them.
    """
    nodes = len(accessor.get_field("cleft"))
    for each in ("sum_hess", "data_count"):
        present = accessor.get_field(f"{each}_present")
        if len(present) == nodes and present.all():
            return accessor.get_field(each).astype(np.float64)
    raise unsupported(
        f"model '{name}': tree {i} does not say how many rows of the training came to its nodes, without "
        "which there are no Shapley values; take the output 'treeshap_output' out of config.pbtxt, or save "
        "the model again with its statistics"
    )
