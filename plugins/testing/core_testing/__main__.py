"""python -m core_testing NAME: test an installed backend or frontend against its contract.

    NAME   of the backend or frontend, or of its package: onnx, backend_onnx
    …      further arguments go to pytest: python -m core_testing backend_onnx -k batch -x

The package contains its examples: a module `conformance` with subclasses of
core_testing.BackendConformance or FrontendConformance.

Exit status: that of pytest (0: all tests pass, 1: a test fails), and 2 if there is nothing to run.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

import pytest

from core import plugins
from core.errors import CoreError

NOTHING_TO_RUN = 2

_MODULE = """
    import numpy as np
    import pytest
    from core_testing import BackendConformance, Example
    from {package} import backend

    class TestContract(BackendConformance):
        supports = {{"batching", "cpu"}}

        @pytest.fixture
        def example(self, tmp_path):
            # write the files of a small model into tmp_path
            return Example(backend, tmp_path, inputs={{"x": …}}, expected={{"y": …}})
"""


class NothingToRun(Exception):
    """There is no test to run. The message gives the reason to the user of the command."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests of the package that the first argument names, and return the exit status.

    Without arguments, and for -h or --help, print the module's docstring instead.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else NOTHING_TO_RUN
    name, *rest = arguments
    try:
        module = conformance_of(name)
    except NothingToRun as error:
        print(f"error: {error}", file=sys.stderr)
        return NOTHING_TO_RUN
    status = int(
        pytest.main([module, "-p", "core_testing.plugin", "-p", "no:cacheprovider", *rest])
    )
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        print(
            f"error: no test of {module} ran: it needs a class Test… that inherits "
            "core_testing.BackendConformance, and what it imports",
            file=sys.stderr,
        )
        return NOTHING_TO_RUN
    return status


def conformance_of(name: str) -> str:
    """Return the file with the examples of a backend, a frontend or a package.

    Raises NothingToRun if there is no such package, it cannot be imported, or it has no examples.
    """
    package = _package_of(name)
    try:
        if (plugin := plugins.available_backends().get(name)) is not None:
            plugin.load()  # its error names the file and line of a mistake
        if (whole := importlib.util.find_spec(package)) is None:
            raise NothingToRun(_not_installed(name, package))
        folders = whole.submodule_search_locations  # None for a module that is no package
        found = None if folders is None else importlib.util.find_spec(f"{package}.conformance")
    except CoreError as error:
        raise NothingToRun(error.message) from error
    except ImportError as error:
        raise NothingToRun(f"'{package}' cannot be imported: {error}") from error
    except ValueError as error:
        raise NothingToRun(f"'{name}' is no name of a package: {error}") from error
    if found is None or found.origin is None:
        raise NothingToRun(
            f"'{package}' brings no examples: there is no module {package}.conformance with a class that "
            "inherits core_testing.BackendConformance. Add one to the package, and install it again:\n"
            + _MODULE.format(package=package)
        )
    return found.origin


def _package_of(name: str) -> str:
    """Return the module of the backend's or frontend's entry point; else the name with "_" for "-"."""
    for installed in (plugins.available_backends(), plugins.frontends()):
        if name in installed:
            return installed[name].entries[0].module.partition(":")[0]
    return name.replace("-", "_")


def _not_installed(name: str, package: str) -> str:
    names = [*plugins.available_backends(), *plugins.frontends()]
    wanted = package.removeprefix("backend_")
    return (
        f"there is no package '{package}', and no backend or frontend of that name (installed: "
        f"{', '.join(names) or 'none'}){plugins.hint(wanted, names)}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
