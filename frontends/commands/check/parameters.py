"""Check the parameters that plugins read, with functions of the entry points `core.parameter_checks`.

check(config)

config   filled in, not completed; left as it is
It raises the CoreError of a load for a wrong value.
"""

from __future__ import annotations

from core import plugins
from core.config import ModelConfig
from core.errors import CoreError, described
from frontends.commands.check.settings import Place, one_line

PARAMETER_CHECKS = "core.parameter_checks"


def check_parameters(config: ModelConfig, place: Place) -> None:
    """Report what the functions of all plugins refuse."""
    for name, plugin in plugins.installed(PARAMETER_CHECKS).items():
        try:
            plugin.load()(config)
        except CoreError as error:
            place.report.add(place.error(error, "parameter"))
        except Exception as error:  # a fault of a plugin must not end the check
            text = f"plugin '{name}' cannot check the parameters: {one_line(described(error))}"
            place.report.add(place.finding("warning", "unchecked", text))
