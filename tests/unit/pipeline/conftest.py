"""Signatures for unit tests, from configuration text."""

from pathlib import Path

import pytest

from core import config as configuration


@pytest.fixture
def signature():
    """signature('input [ … ] output [ … ]', max_batch_size) of a model named m."""

    def make(text, max_batch_size=8):
        message = configuration.parse_text(
            f'name: "m" backend: "test" max_batch_size: {max_batch_size} {text}', "test"
        )
        configuration.normalise(message, {}, [])
        return configuration.signature_of(message, Path(), 1)

    return make
