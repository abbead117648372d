"""The import of the backend does not import torch; a broken torch is reported."""

import builtins
import subprocess
import sys

import pytest
from backend_pytorch.framework import import_torch

from core.errors import CoreError


def test_importing_the_backend_imports_no_torch():
    code = "import sys, backend_pytorch; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("error", [ImportError("no such thing"), OSError("libtorch.so: undefined")])
def test_an_error_for_a_broken_torch_has_its_error_and_advice(monkeypatch, error):
    imported = builtins.__import__

    def broken(name, *args, **kwargs):
        if name == "torch":
            raise error
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", broken)

    with pytest.raises(CoreError) as caught:
        import_torch()

    assert f"cannot import torch: {type(error).__name__}: {error}" in caught.value.message
    assert "pip install" in caught.value.message
