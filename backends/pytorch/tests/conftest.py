"""Make small PyTorch models, and serve them."""

import importlib.util
import shutil
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from backend_pytorch import backend
from core_testing.served import AskedModel, Served

torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning"))


def _beside(name):
    """Import a file of this folder under a module name that no other backend's tests use."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"backend_pytorch_test_{name}", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


MODULES = _beside("modules")


@pytest.fixture
def fake_streams():
    """Return the class FakeStreams."""
    return _beside("fake_streams").FakeStreams


@pytest.fixture(scope="session")
def modules():
    return MODULES


def script(module, path, *, train=False):
    """Save a module as TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, but its files stay in use
        torch.jit.save(torch.jit.script(module.train(train)), str(path))


def export(module, path, *args, dynamic=None, **kwargs):
    """Save a program of torch.export. dynamic: argument → {dimension: Dim}"""
    program = torch.export.export(module.eval(), args, kwargs, dynamic_shapes=dynamic)
    torch.export.save(program, path)


def io(kind, *entries):
    """Return text of config.pbtxt. entries: (name, datatype, dims) or (name, datatype, dims, more)"""
    return "".join(
        f'{kind} {{ name: "{name}" data_type: TYPE_{dtype} dims: [ {dims} ] {" ".join(more)} }}\n'
        for name, dtype, dims, *more in entries
    )


@pytest.fixture(name="script")
def script_fixture():
    return script


@pytest.fixture(name="export")
def export_fixture():
    return export


@pytest.fixture(name="io")
def io_fixture():
    return io


@pytest.fixture
def serve(tmp_path):
    """serve(fill, config, settings=None, **options): serve a model named m.

    fill       an nn.Module, which is saved as TorchScript; or a function that fills the version's folder
    config     text of config.pbtxt; none is written without it
    settings   of --backend-config
    """
    with ExitStack() as running:

        def start(fill, config="", settings=None, **options):
            folder = tmp_path / "models" / "m" / "1"
            shutil.rmtree(folder.parent, ignore_errors=True)
            folder.mkdir(parents=True)
            if isinstance(fill, torch.nn.Module):
                script(fill, folder / "model.pt")
            else:
                fill(folder)
            if config:
                (folder.parent / "config.pbtxt").write_text(config)
            served = running.enter_context(
                Served(
                    backend,
                    tmp_path / "models",
                    backend_config={"pytorch": settings or {}},
                    **options,
                )
            )
            served.load("m")
            return AskedModel(served, "m")

        yield start
