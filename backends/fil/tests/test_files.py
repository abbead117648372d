"""The choice of the file, its kind, and the errors for invalid files."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest
import treelite
import xgboost
from backend_fil.categories import without_names
from sklearn import ensemble

from core.errors import CoreError

DATA = Path(__file__).parent / "data"
# Answers of XGBoost 2.1.4, which wrote the file in its legacy format, for some rows.
LEGACY = {
    0: 0.28434160351753235,
    1: 0.15448400378227234,
    19: 0.9146808981895447,
    300: 0.12352781742811203,
    568: 0.8917713761329651,
}


@pytest.fixture
def model(forests):
    rows, labels = forests.tumours()
    return forests.xgboost(rows, labels, objective="binary:logistic")


def written(model, name):
    """Return a function that writes a model into a folder under a given name."""
    return lambda folder: model.save_model(folder / name)


def holding(content, name="xgboost.json"):
    return lambda folder: (folder / name).write_bytes(content)


def answers(served, forests, model):
    rows, _ = forests.tumours()
    np.testing.assert_allclose(served(rows), model.inplace_predict(rows) > 0.5)


@pytest.mark.parametrize("name", ["xgboost.json", "xgboost.ubj"])
@pytest.mark.parametrize("said", [False, True])
def test_a_file_under_its_usual_name_is_found(serve, forests, model, name, said):
    kind = {"model_type": name.replace(".", "_")} if said else {}

    answers(serve(written(model, name), **kind), forests, model)


def test_the_legacy_format_of_xgboost_is_read(serve, forests):
    served = serve(
        lambda folder: shutil.copy(DATA / "xgboost.model", folder),
        model_type="xgboost",
        predict_proba="true",
    )

    rows, _ = forests.tumours()
    found = served(rows[list(LEGACY)])[:, 1]
    np.testing.assert_allclose(found, list(LEGACY.values()), rtol=1e-6)


@pytest.mark.parametrize("said", [{}, {"model_type": "xgboost"}])
def test_a_file_of_newer_xgboost_with_the_legacy_name_is_read(serve, forests, model, said):
    def fill(folder):
        (folder / "xgboost.model").write_bytes(bytes(model.save_raw("ubj")))

    answers(serve(fill, **said), forests, model)


@pytest.mark.parametrize("name", ["trees.bin", "checkpoint.tl"])
def test_a_file_of_another_name_is_recognised_by_its_content(serve, forests, model, name):
    served = serve(
        lambda folder: treelite.frontend.from_xgboost(model).serialize(folder / name),
        f'default_model_filename: "{name}"',
    )

    answers(served, forests, model)


def test_a_missing_file_is_an_error_with_the_existing_files(serve):
    with pytest.raises(
        CoreError, match=r"unable to find 'model.txt' in '.*1' for model 'm'"
    ) as caught:
        serve(holding(b"{}", "xgboost.json"), model_type="lightgbm")

    assert "the folder has xgboost.json" in caught.value.message
    assert "default_model_filename" in caught.value.message


def test_an_unknown_kind_is_an_error_with_the_known_ones(serve, model):
    with pytest.raises(CoreError, match="'model_type' is 'forest', it must be one of xgboost, xgb"):
        serve(model, model_type="forest")


def test_a_kind_that_contradicts_the_file_is_an_error_with_both(serve, forests):
    rows, labels = forests.tumours()
    booster = forests.lightgbm(rows, labels)

    with pytest.raises(CoreError, match="of model_type 'xgboost_json', but looks like 'lightgbm'"):
        serve(written(booster, "xgboost.json"), model_type="xgboost_json")


def test_an_empty_file_is_an_error(serve):
    with pytest.raises(CoreError, match=r"xgboost.json' is empty; export or copy the file again"):
        serve(holding(b""))


def test_a_pointer_of_git_lfs_is_recognised(serve):
    with pytest.raises(CoreError, match="git lfs pull"):
        serve(holding(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"))


def test_a_pickle_is_not_loaded(serve):
    made = ensemble.RandomForestClassifier(2).fit([[0], [1]], [0, 1])

    with pytest.raises(CoreError, match="is a pickle, which could run any code") as caught:
        serve(holding(pickle.dumps(made), "checkpoint.tl"))

    assert "Unsupported" in caught.value.message
    assert "treelite.sklearn.import_model" in caught.value.message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("xgboost.json", b"{garbage" * 20),
        ("xgboost.ubj", b"{L" + b"garbage" * 20),
        ("xgboost.model", b"garbage" * 200),
        ("model.txt", b"tree\ngarbage"),
        ("checkpoint.tl", b"\4\0\0\0\x07\0\0\0\0\0\0\0"),
    ],
)
def test_garbage_is_an_error_with_file_library_and_next_step(serve, name, content):
    with pytest.raises(CoreError) as caught:
        serve(holding(content, name))

    assert f"model 'm': treelite {treelite.__version__} cannot read '" in caught.value.message
    assert name in caught.value.message
    assert f"its {len(content)} bytes are no complete model" in caught.value.message


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", ["xgboost.json", "xgboost.ubj", "checkpoint.tl", "model.txt"])
def test_a_truncated_file_is_an_error(serve, forests, model, name, kept):
    rows, labels = forests.tumours()

    def fill(folder):
        path = folder / name
        if name == "checkpoint.tl":
            treelite.frontend.from_xgboost(model).serialize(path)
        elif name == "model.txt":
            text = forests.lightgbm(rows, labels).model_to_string()
            path.write_text(text[: text.index("\nend of trees")])
        else:
            model.save_model(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(
        CoreError, match=r"model 'm': .*(cannot read|holds no tree|cannot be served)"
    ):
        serve(fill)


def test_an_unknown_field_is_refused_unless_it_is_allowed(serve, forests, model):
    content = json.loads(bytes(model.save_raw("json")))
    content["learner"]["gradient_booster"]["model"]["novelty"] = 1
    changed = json.dumps(content).encode()

    answers(serve(holding(changed), xgboost_allow_unknown_field="true"), forests, model)


def test_zero_as_missing_of_lightgbm_is_refused(serve, forests):
    rows, labels = forests.tumours()
    rows[np.random.default_rng(0).random(rows.shape) < 0.3] = 0

    with pytest.raises(CoreError, match=r"zero_as_missing=true, which treelite .* does not keep"):
        serve(forests.lightgbm(rows, labels, zero_as_missing=True))


def test_linear_trees_of_lightgbm_are_refused(serve, forests):
    rows, labels = forests.tumours()

    with pytest.raises(CoreError, match="train it with linear_tree=false"):
        serve(forests.lightgbm(rows, labels, linear_tree=True))


@pytest.mark.parametrize("name", ["xgboost.json", "xgboost.ubj"])
def test_a_linear_model_of_xgboost_is_refused_with_its_kind(serve, forests, name):
    rows, labels = forests.tumours()
    model = xgboost.train({"booster": "gblinear"}, xgboost.DMatrix(rows, label=labels), 2)

    with pytest.raises(CoreError, match=r"a linear model \(booster gblinear\) and has no trees"):
        serve(written(model, name))


def test_a_thousand_trees_load_without_a_python_loop_over_nodes(forests):
    """The number of Python calls of a load does not depend on the number of nodes of a tree."""
    rows, labels = forests.tumours()
    small = treelite.frontend.from_xgboost(forests.xgboost(rows, labels, max_depth=1))
    large = treelite.frontend.from_xgboost(
        forests.xgboost(rows, labels, max_depth=12, min_child_weight=0)
    )

    assert calls_of(forests, large) == calls_of(forests, small)


def calls_of(forests, model):
    """Return the number of Python function calls to lay a forest out."""
    import sys

    counted = 0

    def count(frame, event, _):
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        forests.compiled(model)
    finally:
        sys.setprofile(None)
    return counted


def test_a_truncated_file_with_category_names_is_refused(tmp_path, serve):
    frame = pandas.DataFrame({"f": pandas.Categorical(["a", "b", "c"] * 4)})
    matrix = xgboost.DMatrix(frame, np.arange(12) % 3, enable_categorical=True)
    model = xgboost.train({}, matrix, 2)
    for form, kind in (("json", "xgboost_json"), ("ubj", "xgboost_ubj")):
        content = bytes(model.save_raw(form))
        whole, names = without_names(content, kind)
        assert names == {0: ["a", "b", "c"]}
        assert without_names(whole, kind) is None
        start = content.index(b"cats") + 8
        for end in range(start, start + len(content) - len(whole)):
            try:
                without_names(content[:end], kind)
            except (ValueError, KeyError):
                continue

    cut = bytes(model.save_raw("ubj"))[:-100]
    with pytest.raises(CoreError, match=r"treelite .* cannot read"):
        serve(lambda folder: (folder / "xgboost.ubj").write_bytes(cut))
