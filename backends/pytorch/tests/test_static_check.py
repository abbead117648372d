"""What is read of a file without torch is what torch says of the loaded program."""

import pickle
import subprocess
import sys
from copy import deepcopy
from typing import Dict, List, Optional  # noqa: UP035  TorchScript of old has these

import pytest
import torch
from backend_pytorch import backend
from backend_pytorch.exported import open_exported
from backend_pytorch.exported_file import exported_program
from backend_pytorch.script_code import script_ports
from backend_pytorch.static_check import check_version
from backend_pytorch.torchscript import open_torchscript

from core.config import ModelConfig
from core.errors import CoreError


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, scale: Optional[torch.Tensor] = None):  # noqa: UP045
        y = self.layer(x)
        return y if scale is None else y * scale


class Words(torch.nn.Module):
    def forward(self, words: List[str], x: torch.Tensor, least: int = 3):  # noqa: UP006
        return x + len(words) + least


class Named(torch.nn.Module):
    def forward(self, tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:  # noqa: UP006
        return tensors


class Counted(torch.nn.Module):
    def forward(self, x: torch.Tensor, count: int):
        return x * count


class Nested(torch.nn.Module):
    def forward(self, pair, extra):
        return {"sum": pair[0] + pair[1], "half": extra.half()}


@pytest.mark.parametrize("module", [Scaled, Words, Named])
def test_the_arguments_are_those_of_the_program(module, tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.script(module()).save(str(path))
    program = open_torchscript(path, "cpu", "m", optimized=False)

    found = script_ports(path, "m")

    def facts(ports):
        return ports if ports is None else [(each.name, each.text, each.optional) for each in ports]

    assert facts(found) == facts(program.takes)


def test_a_traced_program_has_its_arguments(tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.trace(Scaled(), torch.zeros(2, 4)).save(str(path))

    assert [each.name for each in script_ports(path, "m")] == ["x"]


def test_an_argument_that_clients_cannot_send_is_refused_like_at_a_load(tmp_path):
    path = tmp_path / "model.pt"
    torch.jit.script(Counted()).save(str(path))
    with pytest.raises(CoreError) as loaded:
        open_torchscript(path, "cpu", "m", optimized=False)

    with pytest.raises(CoreError) as checked:
        script_ports(path, "m")

    assert checked.value.message == loaded.value.message


EXPORTED = {
    "batches": (Scaled(), (torch.zeros(2, 4),), {"x": {0: torch.export.Dim("rows", max=16)}}),
    "fixed": (Scaled(), (torch.zeros(2, 4),), None),
    "nested": (
        Nested(),
        ([torch.zeros(2), torch.zeros(2)], torch.zeros(3, dtype=torch.float64)),
        None,
    ),
}


@pytest.fixture(params=sorted(EXPORTED))
def exported(request, tmp_path):
    module, arguments, shapes = EXPORTED[request.param]
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module, arguments, dynamic_shapes=shapes), str(path))
    return path


def test_an_exported_program_has_its_ports(exported):
    program = open_exported(exported, None, "m")

    found = exported_program(exported, "m")

    assert list(found.takes) == list(program.takes)
    assert list(found.gives) == list(program.gives)
    assert found.most_rows == program.most_rows


def test_the_check_completes_a_configuration_like_a_load(exported):
    loaded = ModelConfig(name="m", default_model_filename="model.pt2", platform="torch_aoti")
    checked = deepcopy(loaded)
    backend.complete(loaded, exported.parent, backend)

    assert check_version(checked, exported.parent, backend) is True

    assert checked == loaded


def test_a_checkpoint_is_refused(tmp_path):
    torch.save(Scaled().state_dict(), tmp_path / "model.pt")

    with pytest.raises(CoreError, match=r"is a checkpoint of torch\.save"):
        check_version(ModelConfig(name="m"), tmp_path, backend)


def test_the_check_neither_imports_torch_nor_unpickles(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("evil code ran",)

    torch.jit.script(Scaled()).save(str(tmp_path / "model.pt"))
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Evil()))
    code = (
        "import sys\nfrom pathlib import Path\nfrom backend_pytorch import backend\n"
        "from backend_pytorch.static_check import check_version\nfrom core.config import ModelConfig\n"
        "from core.errors import CoreError\n"
        "for name in ('model.pt', 'evil.pt'):\n"
        "    try:\n"
        "        config = ModelConfig(name='m', default_model_filename=name)\n"
        f"        check_version(config, Path({str(tmp_path)!r}), backend)\n"
        "    except CoreError as error:\n"
        "        print(error.message[:60])\n"
        "print('torch' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "evil code ran" not in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
