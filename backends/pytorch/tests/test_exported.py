"""Programs of torch.export: the file has all metadata."""

import json
import zipfile

import numpy as np
import pytest
import torch

from core.errors import CoreError

ROWS = torch.export.Dim("rows", max=16)
ONES = torch.ones(2, 3), {"a": torch.ones(2, 1), "b": torch.ones(2, 1)}
NESTED = {"x": {0: ROWS}, "more": {"a": {0: ROWS}, "b": {0: ROWS}}, "scale": None}


@pytest.fixture(scope="module")
def nested(tmp_path_factory, modules):
    """Return the bytes of an exported Nested."""
    path = tmp_path_factory.mktemp("exported") / "model.pt2"
    from_export = torch.export.export(
        modules.Nested(), ONES, {"scale": torch.ones(1)}, dynamic_shapes=NESTED
    )
    torch.export.save(from_export, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def convolutions(modules):
    torch.manual_seed(5)
    return modules.Convolutions().eval()


def test_everything_is_filled_in(serve, export, convolutions):
    def save(folder):
        export(convolutions, folder / "model.pt2", torch.ones(2, 1, 4, 4), dynamic=({0: ROWS},))

    model = serve(save)

    config = model.config
    assert config.max_batch_size == 4
    assert config.HasField("dynamic_batching")
    assert [(io.name, list(io.dims)) for io in config.input] == [("x", [1, 4, 4])]
    assert [(io.name, list(io.dims)) for io in config.output] == [("OUTPUT__0", [64])]
    for rows in (1, 3, 4):
        x = np.random.default_rng(rows).standard_normal((rows, 1, 4, 4)).astype(np.float32)
        with torch.no_grad():
            expected = convolutions(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(model(x=x)["OUTPUT__0"], expected, rtol=1e-4, atol=1e-5)


def test_a_fixed_first_dimension_is_a_model_without_batching(serve, export, modules):
    model = serve(lambda folder: export(modules.Identity(), folder / "model.pt2", torch.ones(2, 3)))

    assert model.config.max_batch_size == 0
    assert list(model.config.input[0].dims) == [2, 3]


def test_more_rows_than_in_the_exported_program_are_refused(serve, export, modules):
    def save(folder):
        export(modules.Identity(), folder / "model.pt2", torch.ones(2, 3), dynamic=({0: ROWS},))

    with pytest.raises(CoreError, match="exported for at most 16 rows, max_batch_size is 32"):
        serve(save, 'backend: "pytorch" platform: "torch_aoti" max_batch_size: 32')
    assert serve(save, settings={"default-max-batch-size": "40"}).config.max_batch_size == 16


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (("ARGS[0]", "ARGS[1][a]", "ARGS[1][b]", "KWARGS[scale]"), ("RESULT[z][1]", "RESULT[y]")),
        (("INPUT__0", "INPUT__1", "INPUT__2", "INPUT__3"), ("OUTPUT__2", "OUTPUT__0")),
        (("x", "more_a", "more_b", "scale"), ("OUTPUT__2", "OUTPUT__0")),
    ],
)
def test_nested_structures_are_flattened(serve, nested, io, inputs, outputs):
    x, a, b, scale = inputs
    model = serve(
        lambda folder: (folder / "model.pt2").write_bytes(nested),
        io(
            "input",
            (x, "FP32", "-1, 3"),
            (a, "FP32", "-1, 1"),
            (b, "FP32", "-1, 1"),
            (scale, "FP32", 1),
        )
        + io("output", (outputs[0], "FP32", "-1, 1"), (outputs[1], "FP32", "-1, 3")),
    )
    column = np.array([[1], [2], [3]], np.float32)

    found = model(
        **{x: np.ones((3, 3), np.float32), a: column, b: column, scale: np.array([5], np.float32)}
    )

    assert found[outputs[0]].tolist() == (column * 5).tolist()
    assert found[outputs[1]].tolist() == np.full((3, 3), 2).tolist()


def test_the_keys_of_a_dict_are_the_names_that_are_filled_in(serve, export, modules):
    class Two(torch.nn.Module):
        def forward(self, x, *, scale):
            return {"total": x.sum(), "scaled": x * scale}

    model = serve(
        lambda folder: export(Two(), folder / "model.pt2", torch.ones(3), scale=torch.ones(1))
    )

    assert {io.name for io in model.config.output} == {"total", "scaled"}
    found = model(x=np.array([1, 2, 3], np.float32), scale=np.array([2], np.float32))
    assert found["total"].tolist() == [6]
    assert found["scaled"].tolist() == [2, 4, 6]


def test_a_shape_that_the_exported_program_lacks_is_an_error(serve, nested, io):
    model = serve(
        lambda folder: (folder / "model.pt2").write_bytes(nested),
        io(
            "input",
            ("x", "FP32", "-1, -1"),
            ("more_a", "FP32", "-1, 1"),
            ("more_b", "FP32", "-1, 1"),
        )
        + io("input", ("scale", "FP32", 1))
        + io("output", ("RESULT[y]", "FP32", "-1, -1")),
    )
    column = np.ones((2, 1), np.float32)

    with pytest.raises(CoreError, match="PyTorch execute failure"):
        model(x=np.ones((2, 7), np.float32), more_a=column, more_b=column, scale=column[0])


def test_a_pickle_is_refused(serve, nested, tmp_path):
    def pickled(folder):
        (tmp_path / "whole.pt2").write_bytes(nested)
        with (
            zipfile.ZipFile(tmp_path / "whole.pt2") as whole,
            zipfile.ZipFile(folder / "model.pt2", "w") as changed,
        ):
            for name in whole.namelist():
                content = whole.read(name)
                if name.endswith("constants_config.json"):
                    entry = {"path_name": "c", "is_param": False, "use_pickle": True}
                    content = json.dumps({"config": {"evil": entry}}).encode()
                changed.writestr(name, content)

    with pytest.raises(CoreError, match=r"'evil' of '.*' in '.*' holds more than plain tensors"):
        serve(pickled)


def test_example_inputs_with_more_than_tensors_are_refused(serve, nested, tmp_path):
    touched = tmp_path / "touched"

    class Harmful:
        def __reduce__(self):
            return (touched.write_text, ("run",))

    def pickled(folder):
        torch.save(Harmful(), tmp_path / "harmful.pt")
        (tmp_path / "whole.pt2").write_bytes(nested)
        with (
            zipfile.ZipFile(tmp_path / "whole.pt2") as whole,
            zipfile.ZipFile(folder / "model.pt2", "w") as changed,
        ):
            for name in whole.namelist():
                harmful = name.endswith("sample_inputs/model.pt")
                changed.writestr(
                    name, (tmp_path / "harmful.pt").read_bytes() if harmful else whole.read(name)
                )

    with pytest.raises(CoreError, match="holds more than plain tensors"):
        serve(pickled)
    assert not touched.exists()


def test_clients_send_a_scalar_as_one_element(serve, export):
    class Times(torch.nn.Module):
        def forward(self, x, factor):
            return x * factor

    model = serve(
        lambda folder: export(Times(), folder / "model.pt2", torch.ones(2), torch.tensor(3.0))
    )

    assert list(model.config.input[1].dims) == [1]
    found = model(x=np.array([1, 2], np.float32), factor=np.array([5], np.float32))
    assert found["OUTPUT__0"].tolist() == [5, 10]


@pytest.mark.parametrize(
    ("name", "datatype", "dims", "text"),
    [
        ("x", "FP64", "3", "expects datatype TYPE_FP64 for input 'x', model provides TYPE_FP32"),
        ("x", "FP32", "4", "tensor 'x': the model expects 1 dimensions (shape [3])"),
        ("x", "FP32", "1, 3", "tensor 'x': the model expects 1 dimensions (shape [3])"),
    ],
)
def test_a_configuration_that_the_file_contradicts_is_refused(
    serve, export, modules, io, name, datatype, dims, text
):
    with pytest.raises(CoreError) as caught:
        serve(
            lambda folder: export(modules.Identity(), folder / "model.pt2", torch.ones(3)),
            io("input", (name, datatype, dims)) + io("output", ("OUTPUT__0", "FP32", 3)),
        )

    assert text in caught.value.message
