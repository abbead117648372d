"""Check of the tables of rules: a model `m` on its way through core.config."""

import pytest

from core import plugins
from core.config import fill, normalise, parse_text, to_json, validate
from core.errors import CoreError, Kind


def _settled(text, gpus=(), files=()):
    config = parse_text(text, "test")
    fill(config, "m", plugins.formats(), files)
    normalise(config, {}, gpus)
    validate(config, plugins.formats(), gpus)
    return config


@pytest.fixture(scope="session")
def settled():
    """(text, gpus, files) → the JSON of the configuration, as GET …/config shows it."""
    return lambda *given: to_json(_settled(*given))


@pytest.fixture(scope="session")
def refusal():
    """Return (text, gpus, files) → the message of a refused configuration, of kind INVALID."""

    def told(*given):
        with pytest.raises(CoreError) as caught:
            _settled(*given)
        assert caught.value.kind is Kind.INVALID
        return caught.value.message

    return told
