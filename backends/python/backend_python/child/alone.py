"""The template process in an environment of its own: `PYTHON .../child/alone.py CONTROL`.

The server starts it by file, not by module name, with an interpreter that does not see the server's
packages. It can import only the names in _OURS from them: numpy and the imports of a model come from the
environment. `PYTHON .../child/alone.py check` checks whether a child can run here, and prints as its last
line a JSON object with `python` (version), `executable`, `base` (the prefix of the installation that the
environment is made from), and `numpy` (version) or `error`.

The file is valid Python 3.6, so that an interpreter older than OLDEST can report its version.
"""

import json
import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from typing import Any

OLDEST = (3, 9)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OURS = ("backend_python", "triton_python_backend_utils", "c_python_backend_utils")


class Finder:
    """Finder of our modules in the server's packages; it finds no other modules there.

    It finds Python files only: the compiled modules are for the server's interpreter and its numpy.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in _OURS:
            return None
        folder = path[0] if path else os.path.dirname(_PACKAGE)
        return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)


def check() -> Any:
    """Return what the command `check` prints: the facts of this interpreter.

    They contain `numpy` if models can run here, else the reason in `error`.
    """
    found = {
        "python": list(sys.version_info[:3]),
        "executable": sys.executable,
        "base": os.path.realpath(sys.base_prefix),
    }
    if sys.version_info < OLDEST:
        found["error"] = "it is too old"
        return found
    try:
        import numpy
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "numpy"
        found["error"] = (
            "it has no numpy" if missing else "its numpy cannot be imported: " + str(error)
        )
        return found
    found["numpy"] = numpy.__version__
    _template()
    return found


def _template() -> Any:
    """Import and return the template, with plain.py in place of the compiled modules."""
    import numpy  # noqa: F401  may write bytecode; the imports below must not, into the server's packages

    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    from backend_python import plain

    sys.modules["backend_python.compiled"] = plain
    from backend_python.child import template

    sys.dont_write_bytecode = before
    return template


def main() -> None:
    if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:
        del sys.path[0]  # the files of this folder must not be importable as top-level modules
    sys.meta_path.insert(0, Finder)
    if sys.argv[1] == "check":
        print(json.dumps(check()))
    else:
        _template().main()


if __name__ == "__main__":
    main()
