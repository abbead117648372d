"""Environments of models: another Python, other packages than the server's.

EXECUTION_ENV_PATH, REQUIREMENTS ─► choice ─► archive unpacked, requirements installed (cache)
                                           ─► Interpreter ─► Environment: a template of its own
"""


class Unusable(Exception):
    """Why there is no such environment: what was found, what was expected. Who knows the model and the
    parameter puts them before it."""
