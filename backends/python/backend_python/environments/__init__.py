"""Environments of models: another Python, other packages than the server's.

EXECUTION_ENV_PATH, REQUIREMENTS ─► choice ─► archive unpacked, requirements installed (cache)
                                           ─► Interpreter ─► Environment: a template of its own
"""


class Unusable(Exception):
    """An environment cannot be made or used. The text names the found and the expected; `Choice.error` puts
    the model and the parameter before it."""
