"""Files that cannot be served, and their errors."""

import io as streams
import pickle
import random
import zipfile

import pytest
import torch
from backend_pytorch import backend
from backend_pytorch.complete import complete
from backend_pytorch.exported import open_exported

from core.config import parse_text
from core.errors import CoreError

CONFIG = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""


def refused(serve, fill, config=CONFIG):
    with pytest.raises(CoreError) as caught:
        serve(fill, 'backend: "pytorch" ' + config)
    return caught.value.message


def written(content, name="model.pt"):
    return lambda folder: (folder / name).write_bytes(content)


def test_a_missing_file_is_named_with_the_existing_ones(serve):
    message = refused(serve, written(b"", "other.pt"))

    assert "model.pt' for model 'm' (its folder has other.pt)" in message
    assert "default_model_filename" in message


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"hello" * 100, "its 500 bytes are no archive as torch writes them"),
        (pickle.dumps({"a": 1}), "it is not opened, since pickles run code"),
    ],
)
def test_a_file_that_is_no_archive_is_refused_with_the_next_step(serve, content, advice):
    message = refused(serve, written(content))

    assert "model 'm': cannot load '" in message
    assert advice in message


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_truncated_file_is_refused(serve, script, modules, part):
    def cut(folder):
        script(modules.Identity(), folder / "model.pt")
        whole = (folder / "model.pt").read_bytes()
        (folder / "model.pt").write_bytes(whole[: int(part * len(whole))])

    assert "only the beginning of an archive" in refused(serve, cut)


def test_an_error_for_a_damaged_program_has_the_version_of_torch(serve, script, modules):
    def damage(folder):
        script(modules.Identity(), folder / "whole.pt")
        with (
            zipfile.ZipFile(folder / "whole.pt") as whole,
            zipfile.ZipFile(folder / "model.pt", "w") as broken,
        ):
            for name in whole.namelist():
                content = whole.read(name)
                broken.writestr(
                    name.replace("whole/", "model/"), b"?" if ".py" in name else content
                )

    message = refused(serve, damage)

    assert f"torch {torch.__version__} cannot load" in message
    assert "export it again" in message


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_export_is_refused_by_name_wherever_it_is_damaged(tmp_path, export, seed):
    path = tmp_path / "model.pt2"
    export(torch.nn.Linear(2, 2), path, torch.ones(1, 2))
    content, rng = bytearray(path.read_bytes()), random.Random(seed)
    with zipfile.ZipFile(path) as archive:
        parts = [each for each in archive.infolist() if each.filename.endswith((".json", ".pt"))]
    part = rng.choice(parts)
    place = part.header_offset + rng.randrange(2, 30 + len(part.filename))
    content[place : place + 4] = rng.randbytes(4)
    path.write_bytes(content)

    try:
        open_exported(path, None, "m")  # some bytes have no meaning
    except CoreError as error:
        assert f"model 'm': torch {torch.__version__} cannot load '{path}': " in error.message


def test_names_in_an_archive_that_are_not_text_are_refused(serve, script, modules):
    def damage(folder):
        script(modules.Identity(), folder / "model.pt")
        content = bytearray((folder / "model.pt").read_bytes())
        name = content.rindex(b"constants.pkl")
        content[name - 20 : name] = b"\xe0" * 20
        flags = content.rindex(b"PK\1\2", 0, name) + 8
        content[flags + 1] |= 8  # flag for a UTF-8 name
        (folder / "model.pt").write_bytes(content)

    assert "model 'm': cannot load '" in refused(serve, damage)


def test_another_archive_is_refused(serve):
    buffer = streams.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/readme.txt", "x")

    assert "nothing that torch saves" in refused(serve, written(buffer.getvalue()))


@pytest.mark.parametrize("whole", [True, False])
def test_a_checkpoint_is_refused_with_advice_and_not_unpickled(serve, whole, tmp_path):
    touched = tmp_path / "touched"

    class Harmful:
        def __reduce__(self):
            return (touched.write_text, ("run",))

    def save(folder):
        torch.save(Harmful() if whole else {"weight": torch.ones(2)}, folder / "model.pt")

    message = refused(serve, save)

    assert "is a checkpoint of torch.save: weights, without the code" in message
    assert "torch.jit.script(model).save" in message
    assert 'runtime: "model.py"' in message
    assert not touched.exists()


def test_a_checkpoint_is_refused_before_its_configuration_is_completed(tmp_path):
    torch.save({"w": torch.ones(1)}, tmp_path / "model.pt")
    config = parse_text('name: "m" default_model_filename: "model.pt"', "config.pbtxt")

    with pytest.raises(
        CoreError, match=r"is a checkpoint of torch.save: weights, without the code"
    ):
        complete(config, tmp_path, backend)


def test_an_error_for_a_program_without_forward_lists_its_methods(serve, modules):
    message = refused(serve, modules.NoForward())

    assert "it has no method 'forward'" in message
    assert "predict" in message


def test_a_program_saved_in_training_mode_causes_a_warning(serve, script, modules, caplog):
    serve(lambda folder: script(modules.Trained(), folder / "model.pt", train=True), CONFIG)

    assert "was saved in training mode" in caplog.text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_refused_by_name(serve, modules):
    from backend_pytorch.backend import torch_device

    from core.backend import Device

    with pytest.raises(CoreError) as caught:
        torch_device(Device("GPU", 1), "m")

    assert "an instance on gpu:1 needs CUDA" in caught.value.message
    assert f"torch {torch.__version__}" in caught.value.message
    assert "KIND_CPU" in caught.value.message


def test_a_file_of_torchscript_may_be_called_pt2(serve, script, modules, export):
    config = CONFIG + 'default_model_filename: "model.pt2"'

    serve(lambda folder: script(modules.Identity(), folder / "model.pt2"), config)
    serve(
        lambda folder: export(modules.Identity(), folder / "model.pt2", torch.ones(2)),
        CONFIG + 'platform: "pytorch_libtorch"',
    )


def test_an_argument_of_another_kind_is_refused_by_name(serve, modules):
    class Counted(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return x * n

    assert "argument 'n' of forward is of type int" in refused(serve, Counted())


def test_without_a_configuration_the_error_has_the_names_of_the_file(serve, modules):
    with pytest.raises(CoreError) as caught:
        serve(modules.Sum())

    assert "a TorchScript program tells neither datatypes nor shapes" in caught.value.message
    assert "its inputs are x, y" in caught.value.message
    assert "torch.export.save" in caught.value.message
