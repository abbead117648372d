"""A delegate: a library that is compiled here, loaded, and asked to prepare the graph of a model."""

import gc
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from core_testing import leftovers

from core.errors import CoreError

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("delegate") / "delegate.so"
    source = Path(__file__).with_name("delegate.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", made, source], check=True, timeout=60)
    return made


@pytest.fixture
def config(library, tmp_path):
    """config(**options): the text of config.pbtxt with the delegate. It logs to tmp_path / "log"."""

    def text(**options):
        given = json.dumps({"log": str(tmp_path / "log"), **options}).replace('"', '\\"')
        parameters = {"delegate": str(library), "delegate_options": given}
        return 'backend: "litert" max_batch_size: 4' + "".join(
            f' parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
            for name, value in parameters.items()
        )

    return text


def test_a_delegate_prepares_the_graph_with_its_options_and_ends_with_the_model(
    serve, doubled, config, tmp_path
):
    model = serve(doubled(), config())
    x = np.ones((2, 3), np.float32)

    assert model(x=x)["y"].tolist() == (2 * x).tolist()
    assert (tmp_path / "log").read_text().splitlines()[:2] == ["created", "prepared"]

    model.served.unload("m")

    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[-1] == "destroyed"
    assert lines.count("destroyed") == lines.count("created")


@pytest.mark.parametrize(
    ("refuse", "error"),
    [
        (
            "create",
            r"library of the parameter 'delegate', '.*delegate\.so', cannot .*no such device",
        ),
        ("prepare", r"model\.tflite'.*LiteRT .* cannot run it"),
    ],
)
def test_what_a_delegate_refuses_fails_the_load(serve, doubled, config, tmp_path, refuse, error):
    with pytest.raises(CoreError, match=error):
        serve(doubled(), config(refuse=refuse))

    if refuse == "prepare":
        log = tmp_path / "log"

        def destroyed():
            gc.collect()
            return "destroyed" in log.read_text()

        # The thread of the load may keep the error, and so the interpreter, a moment longer.
        assert leftovers.settles(destroyed)
        lines = log.read_text().splitlines()
        assert lines.count("created") == lines.count("destroyed") == 1
