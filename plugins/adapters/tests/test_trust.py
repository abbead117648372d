"""A pickle can run code when it is read: it is read only if the configuration trusts it."""

import joblib
import pytest
import skops.io
from sklearn.linear_model import LinearRegression

from core import CoreError

TRUSTED = 'parameters { key: "TRUSTED" value { string_value: "%s" } }'


class Harmful:
    """Unpickled, it writes a file."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


@pytest.mark.parametrize("name", ["model.joblib", "model.pkl", "model.pickle"])
@pytest.mark.parametrize("told", ["", "false", "no", "sklearn.linear_model"])
def test_an_untrusted_pickle_is_not_read(tmp_path, completed, name, told):
    joblib.dump(Harmful(tmp_path / "trace"), tmp_path / name)

    with pytest.raises(Exception) as error:
        completed(tmp_path / name, 0, {"TRUSTED": told} if told else {})

    assert not (tmp_path / "trace").exists()
    assert f"'{tmp_path / name}' is a pickle" in str(error.value)
    assert TRUSTED % "true" in str(error.value)


def test_the_file_of_the_last_test_would_have_done_harm(tmp_path, completed):
    joblib.dump(Harmful(tmp_path / "trace"), tmp_path / "model.pkl")

    with pytest.raises(Exception, match="neither predict nor transform"):
        completed(tmp_path / "model.pkl", 0, {"TRUSTED": "true"})

    assert (tmp_path / "trace").exists()


def test_a_load_without_trust_fails_with_the_parameter_to_set(version, server):
    folder = version("")
    joblib.dump(LinearRegression().fit([[0.0], [1]], [0, 1]), folder / "model.joblib")

    with pytest.raises(CoreError) as error:
        server.load()

    assert f"model 'example': '{folder / 'model.joblib'}' is a pickle" in error.value.message
    assert TRUSTED % "true" in error.value.message


def test_a_configuration_that_is_complete_needs_the_trust_too(version, server):
    tensor = '{ name: "%s" data_type: TYPE_FP64 dims: [ -1, 1 ] }'
    config = f"input [ {tensor % 'X'} ] output [ {tensor % 'predict'} ]"
    folder = version(config)
    joblib.dump(Harmful(folder / "trace"), folder / "model.joblib")

    with pytest.raises(CoreError, match="is a pickle"):
        server.load()

    assert not (folder / "trace").exists()


class Doubled(LinearRegression):
    """A type that skops does not know."""

    def predict(self, features):
        return 2 * super().predict(features)


@pytest.fixture
def unknown(tmp_path):
    file = tmp_path / "model.skops"
    skops.io.dump(Doubled().fit([[0.0], [1]], [0, 1]), file)
    (name,) = skops.io.get_untrusted_types(file=file)
    return file, name


@pytest.mark.parametrize("told", ["", "other.Type"])
def test_skops_refuses_untrusted_types_by_name(unknown, completed, told):
    file, name = unknown

    with pytest.raises(Exception) as error:
        completed(file, 0, {"TRUSTED": told})

    assert f"holds types that skops does not know to be harmless: {name}." in str(error.value)
    assert TRUSTED % name in str(error.value)


@pytest.mark.parametrize("told", ["true", "other.Type, {}"])
def test_skops_makes_the_types_that_are_trusted(unknown, completed, told):
    file, name = unknown

    inputs, outputs = completed(file, 0, {"TRUSTED": told.format(name)})

    assert inputs == {"X": ("TYPE_FP64", [-1, 1])}
    assert list(outputs) == ["predict"]
