"""Files of CatBoost: answers are those of catboost, and what cannot be served is refused by name."""

import json
from pathlib import Path

import numpy as np
import pytest
import treelite
from backend_fil import backend
from backend_fil.catboost import Damaged, Refused, content_of, treelite_of
from backend_fil.files import FILENAMES
from backend_fil.headers import Unreadable, header_of
from backend_fil.reading import describe
from backend_fil.static_check import check_version

import core
from core.config import ModelConfig
from core.errors import CoreError

DATA = Path(__file__).parent / "data" / "catboost"
EXPECTED = dict(np.load(DATA / "expected.npz"))
ROWS = EXPECTED["rows"]
CLASSIFIERS = sorted(each.split(".")[0] for each in EXPECTED if each.endswith(".probabilities"))
NAMES = sorted(each.split(".")[0] for each in EXPECTED if each.endswith(".prediction"))
FORMS = {"catboost": "cbm", "catboost_json": "json"}
BOTH = 'output [{ name: "output__0" }, { name: "treeshap_output" }]'


@pytest.fixture(params=sorted(FORMS))
def kind(request):
    return request.param


def file(name, kind):
    return DATA / f"{name}.{FORMS[kind]}"


def copied(name, kind):
    """Return a function that writes a model into a folder under the usual name of its kind."""
    content = file(name, kind).read_bytes()
    return lambda folder: (folder / FILENAMES[kind]).write_bytes(content)


@pytest.mark.parametrize("name", NAMES)
def test_the_default_prediction_is_that_of_catboost(serve, name, kind):
    found = serve(copied(name, kind))(ROWS)

    np.testing.assert_allclose(found, EXPECTED[f"{name}.prediction"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_those_of_catboost(serve, name, kind):
    found = serve(copied(name, kind), predict_proba="true")(ROWS)

    expected = EXPECTED[f"{name}.probabilities"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"leafwise"}))
def test_shapley_values_are_those_of_catboost(serve, name, kind):
    found = serve(copied(name, kind), BOTH)(ROWS, ("output__0", "treeshap_output"))

    expected = EXPECTED[f"{name}.shap"]
    assert found["treeshap_output"].shape == expected.shape
    np.testing.assert_allclose(found["treeshap_output"], expected, rtol=1e-4, atol=1e-4)


def test_shapley_values_of_leafwise_trees_sum_to_the_margin(serve, kind):
    """Those of catboost 1.2.10 do not, so they are not compared."""
    found = serve(copied("leafwise", kind), BOTH)(ROWS, ("output__0", "treeshap_output"))

    probability = EXPECTED["leafwise.probabilities"][:, 1]
    margin = np.log(probability / (1 - probability))
    np.testing.assert_allclose(found["treeshap_output"].sum(1), margin, rtol=1e-5, atol=1e-5)


def test_the_threshold_of_the_file_counts_unless_there_is_a_parameter(serve, kind):
    probability = EXPECTED["threshold.probabilities"][:, 1]

    found = serve(copied("threshold", kind), threshold="0.6")(ROWS)

    assert (probability > 0.3).sum() > (probability > 0.6).sum()
    np.testing.assert_array_equal(found, probability > 0.6)


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_of_a_file_give_the_same_trees(name):
    one, other = (treelite_of(file(name, kind), kind) for kind in FORMS)

    predicted = [treelite.gtil.predict(each, ROWS, pred_margin=True) for each in (one, other)]
    np.testing.assert_array_equal(*predicted)
    assert one.num_tree == other.num_tree


@pytest.mark.parametrize("name", NAMES)
def test_the_static_check_says_what_a_load_says(name, kind, tmp_path):
    copied(name, kind)(tmp_path)
    path = tmp_path / FILENAMES[kind]
    expected = describe(treelite_of(path, kind), "m")
    loaded, checked = ModelConfig(name="m"), ModelConfig(name="m")

    found = header_of(path, kind)
    backend.complete(loaded, tmp_path, backend)

    assert found is not None
    for each in ("features", "classes", "classifies", "has_vectors", "trees"):
        assert getattr(found, each) == getattr(expected, each), each
    assert check_version(checked, tmp_path, backend) is True
    assert checked == loaded


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("one_hot", "categorical feature"),
        ("counters", "categorical feature"),
        ("targets", "its loss function 'MultiRMSE' has 2 values for each row"),
    ],
)
def test_what_has_no_numbers_is_refused_by_name(serve, name, told, kind, tmp_path):
    with pytest.raises(CoreError, match=told) as caught:
        serve(copied(name, kind))

    assert "Unsupported: model 'm'" in caught.value.message
    assert FILENAMES[kind] in caught.value.message
    with pytest.raises(CoreError, match=told):
        check_version(ModelConfig(name="m"), tmp_path / "models" / "m" / "1", backend)


def test_categorical_features_are_named(serve):
    with pytest.raises(CoreError, match="the categorical feature 'colour'"):
        serve(copied("one_hot", "catboost"))


def test_a_file_under_another_name_is_recognised_by_its_content(serve, kind):
    content = file("binary", kind).read_bytes()

    found = serve(
        lambda folder: (folder / "trees.bin").write_bytes(content),
        'default_model_filename: "trees.bin"',
    )(ROWS)

    np.testing.assert_array_equal(found, EXPECTED["binary.prediction"])


def test_a_version_with_a_binary_file_needs_no_configuration(tmp_path):
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    copied("binary", "catboost")(folder)

    with core.Server(model_repository=str(tmp_path)) as server:
        found = server.infer("m", {"input__0": ROWS})["output__0"]

    np.testing.assert_array_equal(found, EXPECTED["binary.prediction"])


@pytest.mark.parametrize("backend", ["catboost", "fil"])
def test_a_file_of_json_is_found_by_either_name(tmp_path, backend):
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    copied("binary", "catboost_json")(folder)
    (folder.parent / "config.pbtxt").write_text(f'backend: "{backend}"')

    with core.Server(model_repository=str(tmp_path)) as server:
        assert server.metadata("m")["versions"] == ["1"]


def test_a_checkpoint_comes_before_a_file_of_catboost(serve, forests):
    """A folder with both is served as before this backend read files of CatBoost."""
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels, objective="binary:logistic")

    def fill(folder):
        copied("binary", "catboost")(folder)
        copied("binary", "catboost_json")(folder)
        treelite.frontend.from_xgboost(model).serialize(folder / "checkpoint.tl")

    np.testing.assert_array_equal(serve(fill)(rows), model.inplace_predict(rows) > 0.5)


def test_a_kind_that_contradicts_the_file_is_refused(serve):
    content = file("binary", "catboost_json").read_bytes()

    with pytest.raises(
        CoreError, match="of model_type 'xgboost_json', but looks like 'catboost_json'"
    ):
        serve(
            lambda folder: (folder / "xgboost.json").write_bytes(content), model_type="xgboost_json"
        )


@pytest.mark.parametrize("name", ["binary", "leafwise", "classes"])
@pytest.mark.parametrize("kept", [0.0003, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_an_error(serve, tmp_path, name, kind, kept):
    content = file(name, kind).read_bytes()
    cut = content[: max(40, int(len(content) * kept))]

    with pytest.raises(CoreError, match="are no complete model of that kind") as caught:
        serve(lambda folder: (folder / FILENAMES[kind]).write_bytes(cut), model_type=kind)

    assert f"its {len(cut)} bytes" in caught.value.message
    with pytest.raises(Unreadable):
        header_of(tmp_path / "models" / "m" / "1" / FILENAMES[kind], kind)


@pytest.mark.parametrize("name", ["binary", "leafwise", "classes"])
def test_changed_bytes_raise_no_other_error(name, kind, forests, tmp_path):
    """Each reads as a model, or is refused: no other exception, no crash, no endless loop."""
    content = file(name, kind).read_bytes()
    random = np.random.default_rng(3)
    path = tmp_path / "changed"
    refused = 0
    for _ in range(150):
        changed = bytearray(content)
        for place in random.integers(0, len(changed), 3):
            changed[place] = random.integers(0, 256)
        path.write_bytes(changed)
        try:
            model = treelite_of(path, kind)
            if model.num_feature == ROWS.shape[1]:
                forests.walked(forests.compiled(model), ROWS)
        except (Damaged, Refused, CoreError):
            refused += 1

    assert refused


def test_leaves_outside_of_the_file_are_refused(tmp_path):
    found = json.loads(file("binary", "catboost_json").read_bytes())
    found["oblivious_trees"][0]["leaf_values"].pop()
    path = tmp_path / "catboost.json"
    path.write_text(json.dumps(found))

    with pytest.raises(Damaged, match="a tree of 3 levels has 7 values"):
        content_of(path, "catboost_json")


def reshape_weights(tree):
    """Give a tree of JSON weights of another shape."""
    if "leaf_weights" in tree:
        tree["leaf_weights"] = [[each] for each in tree["leaf_weights"]]
    elif "value" in tree:
        tree["weight"] = [tree["weight"]]
    else:
        reshape_weights(tree["left"])
        reshape_weights(tree["right"])


@pytest.mark.parametrize(("name", "trees"), [("binary", "oblivious_trees"), ("leafwise", "trees")])
def test_weights_that_are_no_numbers_are_refused(serve, name, trees):
    found = json.loads(file(name, "catboost_json").read_bytes())
    reshape_weights(found[trees][0])
    changed = json.dumps(found)

    with pytest.raises(CoreError, match="leaves have weights of the shape"):
        serve(lambda folder: (folder / "catboost.json").write_text(changed))


THRESHOLD = "binclass_probability_threshold"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scale_and_bias": [1, [0.5, 0.5]]}, r"its bias \[0.5, 0.5\] does not fit 1 values"),
        ({"scale_and_bias": [1, [float("nan")]]}, r"its bias \[nan\] does not fit"),
        ({"scale_and_bias": [float("nan"), [0]]}, "its scale is nan, a finite number is expected"),
        ({"scale_and_bias": [float("inf"), [0]]}, "its scale is inf"),
        ({"model_info": {THRESHOLD: "x"}}, f"{THRESHOLD} is 'x', not a number"),
        ({"model_info": {THRESHOLD: "nan"}}, "its probability threshold is nan, a finite number"),
    ],
)
def test_the_check_refuses_numbers_that_a_load_refuses(serve, tmp_path, changes, told):
    found = json.loads(file("binary", "catboost_json").read_bytes())
    found.update(changes)
    changed = json.dumps(found)

    with pytest.raises(CoreError, match=told):
        serve(lambda folder: (folder / "catboost.json").write_text(changed))

    with pytest.raises(Unreadable, match=told):
        header_of(tmp_path / "models" / "m" / "1" / "catboost.json", "catboost_json")


def test_a_fresh_model_of_catboost(serve, tmp_path):
    """With catboost, which CI does not install: 300 trees, and rows that the training has not seen."""
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    random = np.random.default_rng(5)
    rows = random.normal(size=(2000, 20)).astype(np.float32)
    labels = np.sin(rows[:, 0] * 2) + rows[:, 1] * rows[:, 2]
    model = catboost.CatBoostRegressor(
        iterations=300, depth=6, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(rows[:1000], labels[:1000])

    found = serve(lambda folder: model.save_model(str(folder / "model.cbm")))(rows)

    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-6, atol=1e-6)
