"""Clients cannot make the server run code: no pickles, no libraries that use them, no eval.

The test reads the source of core, frontends, backends and plugins, without their tests. The only places that
read pickles read files of the repository, and only if the configuration of a model trusts
them.
"""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    "pickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "jsonpickle",
    "marshal",
    "multiprocessing",  # its connections, queues and managers unpickle what comes
    "shelve",
}
BENTOML = "plugins/importers/core_importers/adapters/compat/bentoml"
# file → modules that it may name, and what has to stand there too
TRUSTED = {
    "plugins/adapters/core_adapters/scikit.py": ({"joblib"}, "trust.check_pickle("),
    # Of models that `core import` writes.
    f"{BENTOML}/picklable_model.py": ({"cloudpickle"}, "check_trust("),
    f"{BENTOML}/sklearn.py": ({"joblib"}, "check_trust("),
}


def sources(*endings):
    """Files of what runs in a server."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *endings],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [
        name
        for name in listed
        if name.startswith(("core/", "frontends/", "backends/", "plugins/"))
        and "tests" not in Path(name).parts
        and (ROOT / name).exists()
    ]


def wrong_in(tree, allowed=frozenset()):
    """Return the forbidden parts of a module: (line, what)."""
    return [
        (node.lineno, what)
        for node in ast.walk(tree)
        for what in (*_modules(node), *_calls(node))
        if what not in allowed
    ]


def _modules(node):
    """Modules that are imported, by a statement or by name."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or "", *(alias.name for alias in node.names)]
    elif isinstance(node, ast.Call):
        names = [
            each.value
            for each in node.args
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
    else:
        names = []
    return [name.split(".")[0] for name in names if name.split(".")[0] in MODULES]


def _calls(node):
    """Return the calls that can run their input as code."""
    if not isinstance(node, ast.Call):
        return
    called = ast.unparse(node.func)
    given = {each.arg: ast.unparse(each.value) for each in node.keywords}
    if called in (
        "eval",
        "exec",
        "builtins.eval",
        "builtins.exec",
        "yaml.load",
        "yaml.unsafe_load",
    ):
        yield called
    if called == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if given.get("allow_pickle", "False") != "False":
        yield "allow_pickle"


@pytest.mark.parametrize("name", sources("*.py"))
def test_no_module_can_unpickle(name):
    text = (ROOT / name).read_text()
    allowed, guard = TRUSTED.get(name, (frozenset(), ""))

    assert wrong_in(ast.parse(text), allowed) == []
    assert guard in text


@pytest.mark.parametrize("name", sources("*.pyx", "*.pxd"))
def test_no_compiled_module_can_unpickle(name):
    text = (ROOT / name).read_text()
    words = "|".join(sorted(MODULES))

    assert re.findall(rf"^\s*(?:from|c?import)\s+(?:{words})\b", text, re.MULTILINE) == []
    assert re.findall(r"(?<![\w.])(?:eval|exec)\(", text) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from multiprocessing import connection",
        "import_module('joblib')",
        "from joblib.numpy_pickle import load",
        "numpy.load(path, allow_pickle=True)",
        "numpy.load(path, allow_pickle=chosen)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "eval(text)",
        "exec(text)",
    ],
)
def test_these_tests_find_their_subjects(text):
    assert wrong_in(ast.parse(text)) != []


@pytest.mark.parametrize(
    "text", ["request.exec(decoupled=True)", "torch.load(path, weights_only=True)", "'pickle'"]
)
def test_these_tests_leave_the_rest(text):
    assert wrong_in(ast.parse(text)) == []
