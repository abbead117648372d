"""Check a version without loading it: parameters, and the header of its file against the configuration.

core check ─► [check_version] ─► headers ─► complete, answers.
"""

from __future__ import annotations

from pathlib import Path

from backend_fil.answers import check
from backend_fil.catboost import Refused
from backend_fil.complete import complete_from
from backend_fil.files import model_file, no_tree, refused, unreadable
from backend_fil.headers import Unreadable, header_of
from backend_fil.settings import settings_of, warn
from core.backend import Backend
from core.completion import is_described
from core.config import ModelConfig
from core.model_file import check_readable


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return whether the header says enough.

    path   the version's folder
    Raises the CoreError of a load for a missing, damaged or wrong file, and for an entry or parameter that
    does not fit.
    """
    warn(config)
    settings = settings_of(config)
    file, kind = model_file(config, path, settings)
    check_readable(file, config.name)
    try:
        description = header_of(file, kind)
    except Unreadable as error:
        raise unreadable(file, kind, config.name, str(error)) from None
    except Refused as error:
        raise refused(file, config.name, error) from None
    if description is None:
        return is_described(config)
    if description.trees == 0:
        raise no_tree(file, config.name)
    if not is_described(config):
        complete_from(description, config, settings, backend)
    check(config, description, settings)
    return True
