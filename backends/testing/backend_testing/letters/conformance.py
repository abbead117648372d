"""Conformance tests of letters, as engine and as backend. Run them with: python -m core_testing letters"""

from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example
from core_testing.engines import (
    EmbeddingConformance,
    EngineConformance,
    EngineExample,
    RankConformance,
)

from backend_testing.letters import letters


class TestLetters(EngineConformance):
    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        context = 'parameters { key: "context" value { string_value: "512" } }'
        delay = 'parameters { key: "delay_ms" value { string_value: "1" } }'
        return EngineExample(letters, tmp_path, "abc", context + delay)


class TestEmbeddings(EmbeddingConformance):
    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        task = 'parameters { key: "task" value { string_value: "embed" } }'
        return EngineExample(letters, tmp_path, "some words", task)


class TestRanks(RankConformance):
    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        task = 'parameters { key: "task" value { string_value: "rank" } }'
        return EngineExample(letters, tmp_path, "some words", task)


class TestLettersAsBackend(BackendConformance):
    supports = {"streaming"}
    # The task of a request decides which inputs it needs, so all are optional in the configuration.
    test_a_missing_input_never_reaches_execute = None  # type: ignore[assignment]

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """Return an example with one answer: most tests do not read streams."""
        return Example(
            letters, tmp_path, inputs=_asked("ab", 3), expected={"text_output": _text("abcde")}
        )

    @pytest.fixture
    def stream_example(self, tmp_path: Path) -> Example:
        return Example(
            letters,
            tmp_path,
            inputs={**_asked("ab", 3), "stream": np.array([True])},
            expected=[{"text_output": _text(each)} for each in "cde"],
        )


def _asked(prompt: str, tokens: int) -> dict[str, np.ndarray]:
    return {
        "text_input": _text(prompt),
        "sampling_parameters": _text(f'{{"max_tokens": {tokens}}}'),
    }


def _text(text: str) -> np.ndarray:
    return np.array([text.encode()], object)
