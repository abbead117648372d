"""Models that load give no errors and no warnings, and a large tree is checked quickly."""

import os
import time
from pathlib import Path

import pytest
from repository_check import check_onnx
from repository_check.broken_models import ONNX, X, Y, onnx_model, write

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    {each.parent.parent for each in (ROOT / "examples").rglob("models/*/config.pbtxt")}
)
SHARED = os.environ.get("CORE_CONFORMANCE_MODELS", "")
# A folder of each example whose script links the models of a package.
BUILT_BY_A_SCRIPT = {
    "chat": "smollm2/1",
    "notes": "network_onnx",
    "ocr": "find_text/1",
    "rag": "smollm2/1",
    "speech": "speech/1",
}


def wrong(found):
    return [each for each in found if each["level"] != "note"]


@pytest.mark.parametrize("repository", EXAMPLES, ids=lambda each: str(each.relative_to(ROOT)))
def test_the_examples_are_right(repository, findings):
    example = repository.parent
    options = (
        ["--backend-directory", example / "backends"] if (example / "backends").is_dir() else []
    )
    if not (repository / BUILT_BY_A_SCRIPT.get(example.name, "")).exists():
        pytest.skip("its models are not installed")

    assert wrong(findings(repository, *options)) == []


def test_the_models_of_the_conformance_tests_are_right(findings):
    found = wrong(findings(ROOT / "tests" / "conformance" / "models"))

    # The tests add models that these ensembles call.
    assert [each for each in found if "which the repository lacks" not in each["text"]] == []


@pytest.mark.skipif(not SHARED, reason="CORE_CONFORMANCE_MODELS names no other repository")
def test_other_conformance_models_are_right(findings):
    found = wrong(findings(SHARED))

    assert [each for each in found if "which the repository lacks" not in each["text"]] == []


def test_a_thousand_models_are_checked_in_seconds(tmp_path, check):
    file = check_onnx.model()
    for number in range(1000):
        write(tmp_path / f"model{number}", onnx_model(ONNX + X + Y, file))

    began = time.process_time()
    status, out = check(tmp_path)
    took = time.process_time() - began

    assert status == 0
    assert out.splitlines()[-1] == "1000 models, 0 failed: 0 errors, 0 warnings, 0 notes"
    assert took < 10
