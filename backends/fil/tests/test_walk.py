"""The native code gives the answers of treelite's reference, for random forests and rows."""

import random

import numpy as np
import pytest
import treelite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from core.errors import CoreError

FEATURES = 3
LINKS = (
    ("identity", 1),
    ("signed_square", 1),
    ("hinge", 1),
    ("sigmoid", 1),
    ("exponential", 1),
    ("exponential_standard_ratio", 1),
    ("logarithm_one_plus_exp", 1),
    ("softmax", 3),
    ("identity_multiclass", 3),
    ("multiclass_ova", 3),
)
# Few numbers, so that rows and thresholds are often equal; limits of float32; missing values.
NUMBERS = (0.0, -0.0, 1.0, 2.0, 2.5, -1.0, 1e-40, 3.4028234663852886e38, -3.4028234663852886e38)
VALUES = (*NUMBERS, 31.0, 32.0, 33.0, 5e6, 2.0**24, 3e9, np.nan, np.inf, -np.inf)
DOUBLES = (*NUMBERS, 0.1, 1e308, -1e308, 2.0 + 1e-12, 2.0 - 1e-12)
CATEGORIES = (0, 1, 2, 31, 32, 33, 70, 5_000_000)


def tree_of(source, leaf, categorical, depth=0):
    """Return a random tree as nested tuples: a leaf, or (question, left, right)."""
    if depth == 6 or source.random() < 0.15 * depth:
        return leaf()
    feature, default_left = source.randrange(FEATURES), source.random() < 0.5
    if categorical and source.random() < 0.4:
        listed = source.sample(CATEGORIES, source.randrange(5))
        question = ("category", feature, listed, source.random() < 0.5, default_left)
    else:
        operator = source.choice(("<", "<=", ">", ">="))
        question = ("number", feature, source.choice(DOUBLES), operator, default_left)
    return (
        question,
        tree_of(source, leaf, categorical, depth + 1),
        tree_of(source, leaf, categorical, depth + 1),
    )


def model_of(source, link, classes, has_vectors, number, count):
    """Return a treelite model of `count` random trees."""

    def leaf():
        values = [round(source.uniform(-4, 4), 3) for _ in range(classes if has_vectors else 1)]
        return values if has_vectors else values[0]

    categorical = source.random() < 0.5
    drawn = [tree_of(source, leaf, categorical) for _ in range(count)]
    of_class = [-1 if has_vectors else i % classes for i in range(count)]
    has_parameter = link in ("sigmoid", "multiclass_ova", "exponential_standard_ratio")
    builder = ModelBuilder(
        threshold_type=number,
        leaf_output_type=number,
        metadata=Metadata(
            num_feature=FEATURES,
            task_type="kRegressor" if classes == 1 else "kMultiClf",
            average_tree_output=source.random() < 0.5,
            num_target=1,
            num_class=[classes],
            leaf_vector_shape=(1, classes if has_vectors else 1),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=count, target_id=[-1 if has_vectors else 0] * count, class_id=of_class
        ),
        postprocessor=PostProcessorFunc(link, sigmoid_alpha=2.0, ratio_c=3.0)
        if has_parameter
        else PostProcessorFunc(link),
        base_scores=[source.uniform(-1, 1) for _ in range(classes)],
    )
    for tree in drawn:
        builder.start_tree()
        _write(builder, tree)
        builder.end_tree()
    return builder.commit()


MODELS = st.builds(
    lambda source, kind, has_vectors, number, count: model_of(
        source, *kind, has_vectors and kind[1] > 1, number, max(count, kind[1])
    ),
    st.integers(0, 2**32).map(random.Random),
    st.sampled_from(LINKS),
    st.booleans(),
    st.sampled_from(("float32", "float64")),
    st.integers(1, 20),
)


def _write(builder, tree):
    waiting, made = [(0, tree)], 1
    while waiting:
        key, node = waiting.pop()
        builder.start_node(key)
        if isinstance(node, tuple):
            (kind, feature, *asked), left, right = node
            children = {"left_child_key": made, "right_child_key": made + 1}
            if kind == "number":
                threshold, operator, default_left = asked
                builder.numerical_test(
                    feature, threshold, default_left=default_left, opname=operator, **children
                )
            else:
                categories, listed_right, default_left = asked
                builder.categorical_test(
                    feature,
                    default_left=default_left,
                    category_list=categories,
                    category_list_right_child=listed_right,
                    **children,
                )
            waiting += [(made, left), (made + 1, right)]
            made += 2
        else:
            builder.leaf(node)
        builder.end_node()


ROWS = st.builds(
    lambda source, count: np.array(
        [[source.choice(VALUES) for _ in range(FEATURES)] for _ in range(count)], np.float32
    ),
    st.integers(0, 2**32).map(random.Random),
    st.integers(1, 40),
)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(MODELS, ROWS)
def test_any_forest_answers_as_the_reference(forests, model, rows):
    found = forests.walked(forests.compiled(model), rows)

    with np.errstate(over="ignore"):
        expected = treelite.gtil.predict(model, rows, nthread=1).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(MODELS, ROWS)
def test_an_answer_does_not_depend_on_the_other_rows(forests, model, rows):
    forest = forests.compiled(model)

    together = forests.walked(forest, rows)

    alone = np.concatenate([forests.walked(forest, row[None]) for row in rows])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("count", [*range(18), 63, 64, 65, 255, 256, 257, 569])
def test_every_number_of_rows_is_answered(forests, count):
    rows, labels = forests.tumours()
    model = treelite.frontend.from_xgboost(forests.xgboost(rows, labels))
    forest = forests.compiled(model)

    found = forests.walked(forest, rows[:count])

    np.testing.assert_array_equal(found, forests.walked(forest, rows)[:count])


def test_a_forest_with_wide_nodes_answers_the_same(forests):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 9000)).astype(np.float32)
    importances = rng.normal(size=9000)
    model = _many_columns(rows.shape[1], importances)
    forest = forests.compiled(model)

    assert not forest.is_narrow
    np.testing.assert_allclose(
        forests.walked(forest, rows), treelite.gtil.predict(model, rows, nthread=1)[:, 0], rtol=1e-4
    )


def _many_columns(features, leaves):
    """Return a forest with a tree for each feature: leaves[feature] for values below 0, else 0.5."""
    builder = ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=Metadata(features, "kRegressor", False, 1, [1], (1, 1)),
        tree_annotation=TreeAnnotation(features, [0] * features, [0] * features),
        postprocessor=PostProcessorFunc("identity"),
        base_scores=[100.0],
    )
    for feature in range(features):
        builder.start_tree()
        _write(builder, (("number", feature, 0.0, "<", True), float(leaves[feature]), 0.5))
        builder.end_tree()
    return builder.commit()


def test_arrays_of_another_shape_are_refused(forests):
    rows, labels = forests.tumours()
    forest = forests.compiled(treelite.frontend.from_xgboost(forests.xgboost(rows, labels)))

    with pytest.raises(ValueError, match="the forest has 30 features and gives 1 values"):
        forests.walked(forest, rows[:, :29])
    with pytest.raises(ValueError, match=r"rows 0 to 5 of 4, into 4"):
        forest.predict(rows[:4], np.empty((4, 1), np.float32), 0, 5)


def test_nodes_that_form_no_tree_are_refused(forests):
    rows, labels = forests.tumours()
    model = treelite.frontend.from_xgboost(forests.xgboost(rows, labels))
    left = model.get_tree_accessor(3).get_field("cleft")
    left[left > 0] = 1

    with pytest.raises(CoreError, match="tree 3 of 12 cannot be served: its nodes form no tree"):
        forests.compiled(model)


def test_a_comparison_for_equality_is_refused(forests):
    builder = ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=Metadata(FEATURES, "kRegressor", False, 1, [1], (1, 1)),
        tree_annotation=TreeAnnotation(1, [0], [0]),
        postprocessor=PostProcessorFunc("identity"),
        base_scores=[0.0],
    )
    builder.start_tree()
    _write(builder, (("number", 0, 1.0, "==", True), 1.0, 2.0))
    builder.end_tree()

    with pytest.raises(CoreError, match="compares with operator number 1; there are <, <=, > and"):
        forests.compiled(builder.commit())
