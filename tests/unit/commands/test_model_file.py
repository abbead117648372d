"""A file of a model: which format it is, and the folder of a model that is made from it."""

import re

import pytest

from core import plugins
from core.config.formats import Format, Formats
from core.errors import CoreError
from frontends.commands.model_file import make_model, model_file
from frontends.commands.paths import Served, is_model, served

FORMATS = Formats(
    [
        Format("model.onnx", "onnxruntime", order=4, may_be_folder=True),
        Format("model.xml", "openvino", order=5),
        Format("model.py", "python", order=8),
        Format("model.json", "python"),
        Format("model.joblib", "python", trust=True),
        Format("clip.json", "clip"),
        Format("affine.npz", "affine"),
    ],
    lambda names: "; install it",
)


@pytest.fixture
def write(tmp_path):
    def write(name, text="x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("name", "format", "model"),
    [
        ("digits.onnx", "model.onnx", "digits"),
        ("Digits v2.1.ONNX", "model.onnx", "Digits_v2_1"),
        ("weights.npz", "affine.npz", "weights"),
        ("clip.json", "clip.json", "clip"),
        ("iris.json", "model.json", "iris"),
    ],
)
def test_the_suffix_of_a_file_says_its_format(write, name, format, model):
    found = model_file(write(name), FORMATS)

    assert (found.format.file, found.name) == (format, model)


def test_a_folder_may_be_a_file_of_a_model(tmp_path):
    (tmp_path / "big.onnx").mkdir()

    assert model_file(tmp_path / "big.onnx", FORMATS).format.file == "model.onnx"
    with pytest.raises(CoreError, match="no installed backend reads"):
        (tmp_path / "big.xml").mkdir()
        model_file(tmp_path / "big.xml", FORMATS)


def test_a_file_that_no_backend_reads_names_what_is_known(write):
    with pytest.raises(CoreError) as error:
        model_file(write("m.foo"), FORMATS)

    assert "found the suffix '.foo', known are .onnx, .xml, .py, .npz, .json, .joblib" in str(
        error.value
    )
    assert str(error.value).endswith("; install it")


def test_formats_of_two_backends_are_not_guessed(write):
    formats = Formats([Format("a.npz", "one"), Format("b.npz", "two")])

    with pytest.raises(CoreError, match=r"a\.npz of backend 'one', b\.npz of backend 'two'"):
        model_file(write("m.npz"), formats)


def test_a_file_that_can_hold_code_needs_trust(write):
    file = write("iris.joblib")

    with pytest.raises(CoreError, match="add --trust") as error:
        model_file(file, FORMATS)
    assert "run that code with your rights; it was not read" in str(error.value)
    assert model_file(file, FORMATS, trust=True).trust


def test_formats_of_installed_distributions_say_what_needs_trust():
    assert {each.file for each in plugins.formats() if each.trust} == {
        *("dali.py", "model.joblib", "model.pickle", "model.pkl", "model.so"),
    }


def test_trust_is_written_into_the_configuration(write, tmp_path):
    make_model(model_file(write("iris.joblib"), FORMATS, trust=True), tmp_path / "m", link=False)

    assert '"TRUSTED"' in (tmp_path / "m" / "config.pbtxt").read_text()
    assert (tmp_path / "m" / "1" / "model.joblib").read_text() == "x"


def files(folder):
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def test_files_of_weights_come_along_under_the_name_that_the_model_has_for_them(write, tmp_path):
    write("digits.bin")
    write("digits.onnx.data")
    write("other.bin")
    write("digits.csv")
    for name, text, weights in [
        ("digits.xml", "x", "model.bin"),
        ("digits.onnx", "digits.bin", "digits.bin"),
    ]:
        folder = tmp_path / f"{name} model"
        make_model(model_file(write(name, text), FORMATS), folder, link=False)
        data = [] if name == "digits.xml" else ["1/digits.onnx.data"]
        assert files(folder) == sorted(["1/model" + name[6:], f"1/{weights}", *data])


def test_modules_that_a_file_imports_come_along(write, tmp_path):
    write("near.py", "import far.deep")
    write("far/__init__.py", "from model import x")
    write("far/deep.py")
    write("unused.py")
    file = write("app.py", "from near import x\nimport os")

    make_model(model_file(file, FORMATS), tmp_path / "m", link=False)

    assert files(tmp_path / "m") == [
        "1/far/__init__.py",
        "1/far/deep.py",
        "1/model.py",
        "1/near.py",
    ]


def test_a_module_with_the_name_of_the_format_keeps_it(write, tmp_path):
    write("model.py", "y = 1")
    file = write("app.py", "import model")

    make_model(model_file(file, FORMATS), tmp_path / "m", link=True)

    assert files(tmp_path / "m") == ["1/app.py", "1/model.py", "config.pbtxt"]
    assert (tmp_path / "m" / "1" / "model.py").read_text() == "y = 1"
    assert 'default_model_filename: "app.py"' in (tmp_path / "m" / "config.pbtxt").read_text()
    assert (tmp_path / "m" / "1" / "app.py").is_symlink()


def test_a_folder_is_a_model_if_it_has_a_configuration_or_versions(write, tmp_path):
    write("one/config.pbtxt")
    write("two/1/model.onnx")
    write("models/1/1/model.onnx")
    write("flat/model-settings.json")
    write("empty/README.md")

    found = {
        name for name in ("one", "two", "models", "flat", "empty") if is_model(tmp_path / name)
    }

    assert found == {"one", "two", "flat"}
    assert not is_model(tmp_path / "two" / "1" / "model.onnx")


def test_paths_become_repositories_and_the_temporary_one_is_removed(write, tmp_path):
    write("models/iris/1/model.onnx")
    file = write("net.onnx")
    with served(
        [str(tmp_path / "models"), str(tmp_path / "models" / "iris"), str(file), "s3://b"]
    ) as found:
        *given, temporary = found.repositories
        assert given == [str(tmp_path / "models"), "s3://b"]
        assert files_in(temporary) == ["iris/1/model.onnx", "net/1/model.onnx"]
        assert found.files == {"net": file}
        assert found.shown(f"'{temporary}/net/1/model.onnx'") == f"'{file}'"

    assert not re.search("core-private", " ".join(map(str, tmp_path.iterdir())))
    with pytest.raises(FileNotFoundError):
        files_in(temporary)


def files_in(folder):
    """Return the files of each model, behind links too."""
    from core.repository import FolderRepository

    repository = FolderRepository(folder)
    return sorted(
        f"{name}/{path}"
        for name in repository.names()
        for path in repository.listing(name)
        if not path.endswith("/")
    )


def test_a_link_that_begins_another_is_told_apart():
    shown = Served([], links={"/tmp/x/m": "models/m", "/tmp/x/m2": "other/m2"}).shown

    assert shown("/tmp/x/m2/config.pbtxt, /tmp/x/m/1") == "other/m2/config.pbtxt, models/m/1"


def test_two_models_with_one_name_and_a_missing_path_are_refused(write, tmp_path):
    write("a/net.onnx")
    write("b/net.onnx")

    with (
        pytest.raises(CoreError, match="two models are named 'net'"),
        served([f"{tmp_path}/a/net.onnx", f"{tmp_path}/b/net.onnx"]),
    ):
        pass
    with (
        pytest.raises(CoreError, match=r"did you mean '.*/a/net\.onnx'"),
        served([f"{tmp_path}/a/nte.onnx"]),
    ):
        pass


def test_a_temporary_folder_that_cannot_be_made_says_so(write, monkeypatch):
    file = write("net.onnx")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/proc/none")

    with (
        pytest.raises(CoreError, match=r"no folder for links to .*; TMPDIR names another place"),
        served([str(file)]),
    ):
        pass
