"""AOTInductor packages. All tests use one package, compiled with few options, because that takes seconds."""

import os
import shutil
import tempfile

import numpy as np
import pytest
import torch

from core.errors import CoreError

NAMES = ("ARGS[0]", "ARGS[1][a]", "ARGS[1][b]", "KWARGS[scale]")
PLAINLY = {
    "cpp.simdlen": 1,  # skips the compiler checks for vector instructions
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp_cache_precompile_headers": False,
}

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="packages need a C++ compiler"
)


@pytest.fixture(scope="module")
def package(tmp_path_factory, modules):
    """Return the bytes of a compiled Nested."""
    rows = torch.export.Dim("rows", min=1, max=16)
    program = torch.export.export(
        modules.Nested(),
        (torch.ones(2, 3), {"a": torch.ones(2, 1), "b": torch.ones(2, 1)}),
        {"scale": torch.ones(1)},
        dynamic_shapes={"x": {0: rows}, "more": {"a": {0: rows}, "b": {0: rows}}, "scale": None},
    )
    path = tmp_path_factory.mktemp("package") / "model.pt2"
    options = torch._inductor.config.get_config_copy()
    known = {key: value for key, value in PLAINLY.items() if key in options}
    torch._inductor.aoti_compile_and_package(
        program, package_path=str(path), inductor_configs=known
    )
    return path.read_bytes()


@pytest.fixture
def start(serve, package, io):
    """start(names, more): serve the package with these names of its inputs."""

    def start(names=NAMES, more="", width=3):
        shapes = (f"-1, {width}", "-1, 1", "-1, 1", "1")
        return serve(
            lambda folder: (folder / "model.pt2").write_bytes(package),
            'platform: "torch_aoti" '
            + io("input", *((n, "FP32", d) for n, d in zip(names, shapes, strict=True)))
            + io("output", ("RESULT[z][1]", "FP32", "-1, 1"), ("RESULT[y]", "FP32", "-1, -1"))
            + more,
        )

    return start


def inputs(names, rows=3, width=3):
    column = np.arange(rows, dtype=np.float32).reshape(rows, 1)
    arrays = (np.ones((rows, width), np.float32), column, column, np.array([5], np.float32))
    return dict(zip(names, arrays, strict=True))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", [NAMES, ("INPUT__0", "INPUT__1", "INPUT__2", "INPUT__3")])
def test_a_package_answers_by_tritons_names(start, names):
    model = start(names)

    for rows in (1, 3, 16):
        given = inputs(names, rows)
        found = model(**given)
        assert found["RESULT[z][1]"].tolist() == (given[names[2]] * 5).tolist()
        assert found["RESULT[y]"].tolist() == np.full((rows, 3), 2).tolist()


def test_a_shape_for_which_it_is_not_compiled_is_an_error(start):
    """Without the check, compiled code would read beyond the end of the input."""
    model = start(width=-1)

    for width in (1, 300):
        with pytest.raises(
            CoreError, match=r"INPUT__0 \(ARGS\[0\]\) has shape .* compiled for \[-1, 3\]"
        ):
            model(**inputs(NAMES, 2, width))
    with pytest.raises(CoreError, match="size 17 in dimension 0, compiled for 0 to 16"):
        model(**inputs(NAMES, 17))
    model(**inputs(NAMES))


def test_a_shape_it_was_not_compiled_for_is_refused_at_the_load(start):
    with pytest.raises(
        CoreError, match=r"'ARGS\[0\]': the model expects 2 dimensions \(shape \[-1, 3\]\)"
    ):
        start(width=4)


def test_missing_inputs_and_outputs_are_named(serve, package):
    with pytest.raises(CoreError) as caught:
        serve(lambda folder: (folder / "model.pt2").write_bytes(package))

    assert "INPUT__1/ARGS[1][a]" in caught.value.message
    assert "OUTPUT__0/RESULT[y]" in caught.value.message


def test_several_instances_run_one_package(start):
    model = start(more="instance_group [ { count: 2 kind: KIND_CPU } ]")

    answers = model.together(*(inputs(NAMES, 1 + i % 4) for i in range(20)))

    assert [len(answer["RESULT[y]"]) for answer in answers] == [1 + i % 4 for i in range(20)]


def test_an_unloaded_package_leaves_no_file(start, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)

    model = start()
    model(**inputs(NAMES))
    model.served.unload("m")

    assert list(folder.iterdir()) == []
