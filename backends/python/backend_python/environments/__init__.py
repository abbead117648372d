"""Environments of models: another Python, other packages than the server's.

    EXECUTION_ENV_PATH, REQUIREMENTS ─► choice ─► archive unpacked, requirements installed (cache)
                                               ─► Interpreter ─► Environment: a template of its own

choice.py        what a model's configuration says
maker.py         from there to an interpreter
cache.py         the folder of what was unpacked and installed, shared between models and servers
archive.py       an archive of conda-pack becomes a folder
unpacking.py     what comes out of it, and where it goes
requirements.py  a requirements.txt becomes a folder
interpreter.py   how an interpreter is started, and what it can
environment.py   those that models use; its template is what their children are forked from
settings.py      --backend-config=python,environment-…
"""


class Unusable(Exception):
    """Why there is no such environment: what was found, what was expected. Who knows the model and the
    parameter puts them before it."""
