"""The part `installed` of `.ci/groups.py` has every test that needs the small language model.

A test needs it if its code, a fixture, or a function that one of these calls has the name of its package.
"""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "llm_" + "smollm2"  # in two parts, so that this file is none of those
# vLLM is too large for .ci/run: `make test-vllm` runs these tests.
ELSEWHERE = {"backends/vllm"}


def definitions(tree):
    """Return name → node of each function, class and value of a module."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {each.id: node for each in node.targets if isinstance(each, ast.Name)}
    return found


def imported(tree):
    """Return the names that a module imports, and those of other modules among its names."""
    nodes = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    return {(each.asname or each.name).partition(".")[0] for node in nodes for each in node.names}


def uses(node, modules):
    """Return the names that a definition uses: of fixtures, functions, and `module.function`."""
    found, own, fixtures = set(), set(), set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (found if isinstance(each.ctx, ast.Load) else own).add(each.id)
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            if each.value.id in modules:
                found.add(each.attr)
        elif isinstance(each, ast.Constant) and each.value == PACKAGE:
            found.add(PACKAGE)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            own |= {
                argument.arg for argument in ast.walk(each.args) if isinstance(argument, ast.arg)
            }
            if takes_fixtures(each):
                fixtures |= {argument.arg for argument in each.args.args}
    return (found - own) | fixtures


def takes_fixtures(function):
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    return function.name.startswith("test_") or "fixture" in decorators


def needing(tree, known):
    """Return the names of a module that need the model, if those of `known` do."""
    defined, modules = definitions(tree), imported(tree)
    known = (set(known) - set(defined)) | {PACKAGE}
    while True:
        more = {name for name, node in defined.items() if uses(node, modules) & known} - known
        if not more:
            return known & set(defined)
        known |= more


def beside(modules):
    """Return the names that need the model in the modules which tests of a folder use."""
    known = set()
    while True:  # one module may use another
        more = set().union(*(needing(each, known) for each in modules)) - known
        if not more:
            return known
        known |= more


def model_tests():
    """Yield the path of each test, as pytest writes it."""
    for top in ("backends", "clients", "examples", "plugins", "tests"):
        for folder in sorted({each.parent for each in (ROOT / top).rglob("test_*.py")}):
            path = folder.relative_to(ROOT)
            if any(part.startswith((".", "_")) for part in path.parts):
                continue
            if str(path.parent) not in ELSEWHERE:
                yield from model_tests_of(folder)


def model_tests_of(folder):
    files = [*folder.glob("*.py"), *folder.parent.glob("*/conformance.py")]
    texts = {each: each.read_text("utf-8") for each in files}
    if not any(PACKAGE in each for each in texts.values()):
        return
    trees = {file: ast.parse(text) for file, text in texts.items()}
    known = beside([tree for file, tree in trees.items() if not file.name.startswith("test_")])
    for file, tree in sorted(trees.items()):
        if file.name.startswith("test_"):
            for name in needing(tree, known) | (inherited(tree) & known):
                if name.startswith(("test_", "Test")):
                    yield f"{file.relative_to(ROOT)}::{name}"


def inherited(tree):
    """Return the names of tests that a module imports from another."""
    nodes = [each for each in tree.body if isinstance(each, ast.ImportFrom)]
    return {each.asname or each.name for node in nodes for each in node.names}


@pytest.fixture(scope="module")
def groups():
    spec = importlib.util.spec_from_file_location("groups", ROOT / ".ci" / "groups.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_test_that_needs_the_model_runs_where_it_is_installed(groups):
    found = set(model_tests())
    named = {each for group in groups.commands("installed") for each in group}

    def runs(test):
        path = Path(test.partition("::")[0])
        return test in named or any(str(each) in named for each in (path, *path.parents))

    assert not sorted(each for each in found if not runs(each))


def test_tests_are_found_by_each_way_to_the_model():
    found = {each.partition("::")[0] for each in model_tests()}

    assert {
        "backends/llamacpp/tests/test_engine.py",  # a fixture of conftest.py
        "backends/openvino_genai/tests/test_conformance.py",  # a class of the package
        "backends/transformers/tests/test_oracle.py",  # a fixture in one test
        "plugins/openai/tests/test_client_fields.py",  # a fixture that calls another module
        "tests/examples/test_rag.py",  # a value of the file
        "tests/process/test_streams.py",  # a fixture of the file
    } <= found
    assert "backends/openvino_genai/tests/test_settings.py" not in found
    assert "plugins/openai/tests/test_completions.py" not in found
