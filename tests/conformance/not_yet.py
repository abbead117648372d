"""What this server cannot do yet, by reason. The list only shrinks: a test here that passes fails the run.

Keys are reasons; values are test modules, or tests of a module ("test_x.py::test_name", without the
parameters in brackets).
"""

NOT_YET: dict[str, list[str]] = {}


def reason(module: str, test: str) -> str | None:
    """Why this test cannot pass yet, None if it must."""
    for why, names in NOT_YET.items():
        if module in names or f"{module}::{test}" in names:
            return why
    return None
