"""Compiled modules of core. If they are not built, the import fails with the commands that build them."""

try:
    from core.native import (  # noqa: F401  they have no uncompiled form
        arrays,
        clock,
        dlpack,
        frames,
        gather,
        strings,
        timer,
    )
except ImportError as error:
    raise ImportError(
        f"core's compiled modules are not beside {__file__} ({error}). In a checkout run "
        "`make dev`, or `pip install --no-build-isolation -e .`. If core is installed, you are "
        "probably standing in its source folder: use `core-serve`, or `python -P -m core.serve`."
    ) from error
