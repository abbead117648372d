"""An instance whose execute is a C function answers without Python."""

from __future__ import annotations

from typing import Any

from core.backend import ModelInstance
from core_testing.example import Example
from core_testing.kit import Kit, Serve


class Native(Kit):
    def test_an_instance_answers_without_its_python_method(
        self, serve: Serve, example: Example
    ) -> None:
        self.needs("native")
        made: type[ModelInstance] = example.backend.instance

        class WithoutPython(made):  # type: ignore[misc, valid-type]
            def execute(self, batch: Any) -> Any:
                raise AssertionError("core called execute of Python in the place of the C function")

        example.backend.instance = WithoutPython
        try:
            example.check(serve(example).answer(example.inputs))
        finally:
            example.backend.instance = made
