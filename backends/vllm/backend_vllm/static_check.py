"""Check a version without loading it: model.json, parameters, adapters, and the files of its model.

core check ─► [check_version] ─► settings_of, with the arguments of the installed vLLM, or of a known version
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from core_generate.model import check_instances

from backend_vllm import installed
from backend_vllm.arguments import FILE, nearest, read_object
from backend_vllm.installed import Kinds
from backend_vllm.known_arguments import ARGUMENTS, VERSION
from backend_vllm.model import complete_by
from backend_vllm.settings import settings_of
from core.backend import Backend
from core.config import ModelConfig
from core.model_file import check_readable

logger = logging.getLogger("core")


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration from the files of a version. Imports no vLLM, and downloads nothing.

    path   the version's folder
    Returns False for a model at Hugging Face whose config.json is not on this machine.
    Raises the CoreError of a load. Without vLLM, an argument that VERSION does not have is a warning only:
    the vLLM that will load the model may be a newer one.
    """
    known = None if installed.is_installed() else _assumed(config, path)
    settings = settings_of(config, path, known, download=False)
    complete_by(settings, config)
    check_instances(config)
    return settings.folder.is_known


def _assumed(config: ModelConfig, path: Path) -> Mapping[str, Kinds]:
    """Return the arguments of VERSION, and those of model.json that it does not have, with a warning each."""
    file = path / (config.default_model_filename or FILE)
    if not file.is_file():
        return ARGUMENTS  # the error comes with the others
    check_readable(file, config.name)
    unknown = read_object(file, config.name).keys() - ARGUMENTS.keys()
    for each in sorted(unknown):
        logger.warning(
            "model '%s': '%s' has the key '%s', which vLLM %s does not have%s",
            config.name,
            file,
            each,
            VERSION,
            nearest(each, ARGUMENTS) or "; no vLLM is installed that could tell more",
        )
    return {**ARGUMENTS, **dict.fromkeys(unknown, ())}
