"""Servers on mounts of every layout: the model has KServe's name, and answers."""

import contextlib
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from core_kserve.address import Address
from core_kserve.arrangement import arrangement_of
from core_kserve.mount import Mount

import core
from core import plugins
from core.errors import CoreError

ONNX = Path(__file__).parents[3] / "examples" / "models" / "breast_cancer" / "1" / "model.onnx"
ROWS = np.zeros((1, 30), np.float32)


@pytest.fixture
def mount(tmp_path):
    folder = tmp_path / "mnt" / "models"
    folder.mkdir(parents=True)
    return folder


def server(mount, query="?name=cancer", **options):
    pytest.importorskip("backend_onnx")
    return core.Server(model_repository=f"kserve://{mount}{query}", **options)


@pytest.fixture
def opened(mount):
    """Return a function that opens the mount as the model of a name, without a server."""
    with contextlib.ExitStack() as open_ones:

        def open_as(name):
            found = Mount(Address.of(f"kserve://{mount}?name={name}"))
            open_ones.callback(found.close)
            found.check()
            return found

        yield open_as


def put(mount, path):
    (mount / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ONNX, mount / path)


def answers(found, model="cancer"):
    return found.infer(model, {"features": ROWS})["label"].shape == (1, 1)


@pytest.mark.parametrize(
    "path", ["model.onnx", "1/model.onnx", "7/model.onnx", "weights-final.onnx"]
)
def test_a_model_gets_the_name_of_the_url(mount, path):
    put(mount, path)

    with server(mount) as found:
        assert answers(found)
        version = path.partition("/")[0] if "/" in path else "1"
        assert found.metadata("cancer")["versions"] == [version]


def test_a_repository_keeps_the_names_of_its_models(mount):
    put(mount, "first/1/model.onnx")
    put(mount, "second/1/model.onnx")

    with server(mount) as found:
        assert answers(found, "first") and answers(found, "second")


def test_a_named_mount_has_no_model_of_another_name(mount, tmp_path):
    put(mount, "model.onnx")
    put(tmp_path, "other/second/1/model.onnx")
    repositories = [f"kserve://{mount}?name=cancer", str(tmp_path / "other")]

    with core.Server(model_repository=repositories) as found:
        assert answers(found) and answers(found, "second")
    with server(mount, model_control_mode="explicit") as found:
        for name in ("wrong", ".hidden", "lost+found"):
            with pytest.raises(CoreError, match=f"there is no folder '{re.escape(name)}'"):
                found.load(name)
        found.load("cancer")
        assert [each["name"] for each in found.index()] == ["cancer"]


def test_hidden_folders_of_a_repository_are_not_loaded(mount):
    put(mount, ".hidden/model.onnx")

    with (
        server(mount, "", model_control_mode="explicit") as found,
        pytest.raises(CoreError, match=r"there is no folder '\.hidden'"),
    ):
        found.load(".hidden")


def test_folders_beside_the_file_make_no_repository(mount):
    put(mount, "model.onnx")
    (mount / "assets" / "1").mkdir(parents=True)
    (mount / "assets" / "1" / "labels.txt").touch()

    with server(mount) as found:
        assert [each["name"] for each in found.index()] == ["cancer"]
        assert answers(found)


@pytest.mark.parametrize("path", ["first/1/model.onnx", "model.onnx"])
def test_folders_of_the_file_system_are_no_models(mount, path):
    put(mount, path)
    for name in ("lost+found", ".snapshot"):
        (mount / name).mkdir()

    with server(mount, "?name=first") as found:
        assert [each["name"] for each in found.index()] == ["first"]


def test_a_configuration_beside_the_file_counts(mount):
    put(mount, "model.onnx")
    (mount / "config.pbtxt").write_text("max_batch_size: 17")

    with server(mount) as found:
        assert answers(found)
        assert found.config("cancer")["max_batch_size"] == 17


def test_a_load_sees_what_has_come_to_the_folder_and_what_has_gone(mount):
    put(mount, "late/model.onnx")
    config = mount / "late" / "config.pbtxt"

    with server(mount, "", model_control_mode="explicit") as found:
        for text, size in (("", 4), ("max_batch_size: 17", 17), ("", 4)):
            if text:
                config.write_text(text)
            else:
                config.unlink(missing_ok=True)
            found.load("late")
            assert found.config("late")["max_batch_size"] == size
            found.unload("late")


def test_files_that_come_later_get_links_like_the_first_one(mount, opened):
    put(mount, "w.onnx")
    found = opened("net")

    assert set(found.listing("net")) == {"1/", "1/model.onnx"}
    (mount / "w.onnx.data").touch()
    assert set(found.listing("net")) == {"1/", "1/model.onnx", "1/w.onnx.data"}


def test_a_changed_file_gets_links_to_what_it_imports_now(mount, opened):
    file = mount / "net.py"
    file.touch()
    os.utime(file, ns=(1, 1))
    (mount / "layers").mkdir()
    (mount / "layers" / "__init__.py").touch()
    found = opened("net")

    assert set(found.listing("net")) == {"1/", "1/model.py"}
    file.write_text("import layers")
    assert "1/layers/__init__.py" in found.listing("net")


def test_the_mount_is_only_read_and_no_link_stays(mount, tmp_path, monkeypatch):
    put(mount, "cancer.onnx")
    mount.chmod(0o555)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with server(mount) as found:
        assert answers(found)
        assert len(list(tmp_path.glob("core-private-*"))) == 1

    assert [each.name for each in mount.iterdir()] == ["cancer.onnx"]
    assert list(tmp_path.glob("core-private-*")) == []


def test_a_model_that_comes_to_an_empty_mount_is_loaded_by_request(mount):
    """KServe's agent: it fetches the files of a TrainedModel to NAME/, then sends load requests."""
    with server(mount, "", model_control_mode="explicit") as found:
        put(mount, "late/model.onnx")
        found.load("late")
        assert answers(found, "late")

        shutil.rmtree(mount / "late")
        found.unload("late")
        put(mount, "late/1/model.onnx")
        found.load("late")
        assert answers(found, "late")


def test_a_folder_that_is_gone_is_no_model(mount):
    with (
        server(mount, "", model_control_mode="explicit") as found,
        pytest.raises(CoreError, match="late"),
    ):
        found.load("late")


@pytest.mark.parametrize("path", ["model.joblib", "1/model.joblib"])
def test_the_time_of_a_written_configuration_does_not_change(tmp_path, mount, path):
    (mount / path).parent.mkdir(exist_ok=True)
    (mount / path).write_text("")
    formats = plugins.formats()
    times = set()

    for number in range(2):
        target = tmp_path / f"made-{number}"
        arrangement_of(mount, "tree", formats, trust=True).make(target)
        times.add((target / "config.pbtxt").stat().st_mtime_ns)
        (mount / "README").write_text("")  # an entry beside the versions

    assert times == {0}


@pytest.mark.parametrize("path", ["model.joblib", "1/model.joblib"])
def test_a_pickle_needs_trust(mount, path):
    joblib = pytest.importorskip("joblib")
    tree = pytest.importorskip("sklearn.tree")
    pytest.importorskip("core_adapters")
    model = tree.DecisionTreeClassifier().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    (mount / path).parent.mkdir(exist_ok=True)
    joblib.dump(model, mount / path)

    with pytest.raises(CoreError):
        server(mount, "?name=tree").start()
    with server(mount, "?name=tree&trust=true") as found:
        assert found.infer("tree", {"X": np.array([[1.0, 1.0]])})["predict"].tolist() == [[1]]


@pytest.mark.parametrize(
    ("files", "texts"),
    [
        (["a.mar"], ("found a.mar in", "no installed backend reads them")),
        (["a.onnx", "b.onnx"], ("found a.onnx, b.onnx in", "name one of them model.SUFFIX")),
        (["model.pkl"], ("model.pkl' can hold code", "add trust=true to the URL")),
        (["classes.joblib"], ("classes.joblib' can hold code", "it was not read")),
    ],
)
def test_a_mount_without_a_model_says_what_it_holds(mount, files, texts, caplog):
    for each in files:
        (mount / each).touch()

    with pytest.raises(CoreError):
        server(mount).start()

    assert all(text in caplog.text for text in texts)


def test_an_empty_mount_is_a_repository_without_models(mount):
    with server(mount) as found:
        assert found.index() == []


def test_a_missing_mount_names_what_kserve_mounts(mount):
    with pytest.raises(CoreError, match="KServe mounts the content of `storageUri` at /mnt/models"):
        server(mount / "absent").start()
