"""Allowed imports between packages, places of compiled code, and the maximum length of a file.

The rules are those of ARCHITECTURE.md. tests/shape also counts imports for type checkers.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 450

# core's layers, from the bottom. A package may import those above it in this list, and itself.
ROOMS = (
    (
        "core.backend_checks",
        "core.cmake",
        "core.devices.visible",
        "core.errors",
        "core.hookspecs",
        "core.similar",
        "core.future_setter",
        "core.system.heap",
        "core.system.platform",
        "core.system.service_manager",
        "core.version",
    ),
    ("core.system.host_policy",),
    ("core.native",),
    ("core.dtypes",),
    ("core.devices.dlpack",),
    ("core.devices.memory",),
    ("core.tensor",),
    ("core.output_memory", "core.request"),
    ("core.costs",),
    ("core.backlog",),
    ("core.response",),
    ("core.config",),
    ("core.batch", "core.ragged"),
    ("core.backend",),
    ("core.devices", "core.completion", "core.model_file", "core.termination"),
    ("core.file_signature",),
    ("core",),
    ("core.options",),
    ("core.system", "core.plugins", "core.telemetry", "core.repository"),
    ("core.caches",),
    ("core.builtin",),
    ("core.pipeline",),
    ("core.alone", "core.lifecycle"),
    ("core.control",),
    ("core.governing",),
    ("core.server",),
    ("core.frontend",),
    ("core.process",),
    ("core.serve", "core.__main__"),
)
# What core may take from elsewhere; frontends and backends bring the rest.
# cython: decorators of classes that are compiled, where nothing is left of the import.
OUTSIDE = {"numpy", "pluggy", "google", "uvloop", "orjson", "cython"}
# What all frontends may import beside their own folder.
SHARED = ("shared",)
# The inner packages of core that a frontend imports because it starts a server itself: plugins and hooks of
# the server, and the interface of repositories, which bound functions implement. The pages of docs have the
# metrics of plugins. Hints about folders need the formats that distributions declare, startup tables the
# plugins and agents in use.
STARTS_A_SERVER = {
    "frontends.in_process": {"core.plugins", "core.repository"},
    "frontends.layouts": {"core.plugins"},
    "frontends.pages": {"core.plugins"},
    "frontends.terminal": {"core.plugins", "core.repository.agents.known"},
}
# Commands show how core would load and run a model, so they read every part of it.
READS_ALL = "frontends.commands"
# Folders of what is a distribution of its own.
DISTRIBUTIONS = ("backends", "plugins", "clients")
# Distributions that extend a frontend, and what they may import of it: the routes of OpenAI are on its port,
# platforms answer on ports of HTTP with its services; the console is a page on its port that shows
# what explain says; the supervisor of workers opens the ports and sockets on which their frontends listen.
# The load generator sends the messages of gRPC, and has a route; captures observe calls, read their messages,
# and have routes; the search for settings loads models over gRPC, and edits config.pbtxt as the check does.
# Triton's module is the in-process frontend with other names. The memory of models is in the index over HTTP.
EXTENDS_A_FRONTEND = {
    "plugins/bench": (
        "frontends.grpc.protocol",
        "frontends.http",
        "frontends.own_ports",
        "frontends.shared",
    ),
    "plugins/capture": (
        "frontends.grpc",
        "frontends.http",
        "frontends.own_ports",
        "frontends.shared",
    ),
    "plugins/console": ("frontends.commands.explain", "frontends.http", "frontends.shared"),
    "plugins/fairness": ("frontends.shared",),
    "plugins/jobs": ("frontends.http", "frontends.shared"),
    "plugins/keda": ("frontends.grpc",),
    "plugins/kserve": ("frontends.commands.model_file", "frontends.commands.paths"),
    "plugins/orca": ("frontends.grpc", "frontends.shared"),
    "plugins/tfserving": ("frontends.grpc", "frontends.http"),
    "plugins/settings": ("frontends.http",),
    "plugins/traffic": ("frontends.grpc.options", "frontends.http"),
    "plugins/memory_budget": ("frontends.http.index_members",),
    "plugins/openai": ("frontends.http", "frontends.shared"),
    "plugins/platforms": ("frontends.http", "frontends.metrics.text", "frontends.shared"),
    "plugins/ray": ("frontends.grpc.options", "frontends.http.options"),
    "plugins/readiness": ("frontends.shared",),
    "plugins/response_cache": ("frontends.shared",),
    "plugins/router": ("frontends.grpc.protocol", "frontends.http", "frontends.shared"),
    "plugins/tritonserver": ("frontends.in_process", "frontends.metrics.text"),
    "plugins/tune": (
        "frontends.commands.check",
        "frontends.grpc.protocol",
        "frontends.http",
        "frontends.shared",
    ),
    "plugins/workers": (
        "frontends.shared.inherited_sockets",
        "frontends.shared.ports",
        "frontends.shared.unix_sockets",
    ),
}
# Files of core with a word that is also one of a backend of this project, and why.
NAMED_BY_CORE = {
    "core/config/formats.py": ("tensorrt_plan", "the language has fields of this platform only"),
    "core/config/validation/general.py": ("letters", "a word of English"),
    "core/options/table.py": ("model.py", "help of --backend-directory: Triton has such folders"),
    "core/repository/agents/checksum.py": ("model.onnx", "an example in an error text"),
    "core/repository/source.py": ("model-settings.json", "the layout of MLServer's repositories"),
}
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}


def tracked(*patterns):
    """The files of the repository that match, also those not yet committed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists())


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    """Every module that a file imports at run time, also inside functions."""
    found = set()
    package = (
        module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    )

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            found.update(names & MODULES or {base})
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


SOURCES = {
    module_name(path): path
    for path in tracked("core/*.py", "core/**/*.py", "frontends/*.py", "frontends/**/*.py")
}
COMPILED = tracked("core/*.pyx", "core/**/*.pyx", "frontends/*.pyx", "frontends/**/*.pyx")
MODULES = set(SOURCES) | {module_name(path) for path in COMPILED}
CORE = sorted(name for name in SOURCES if name.split(".")[0] == "core")
GRAPH = {name: imports(path) for name, path in SOURCES.items()}


def floor(module):
    """Return the layer of a module of core."""
    for height, rooms in enumerate(ROOMS):
        if any(
            module == room or (room != "core" and module.startswith(f"{room}.")) for room in rooms
        ):
            return height
    raise AssertionError(f"{module} is in no room: add it to ROOMS")


@pytest.mark.parametrize("module", CORE)
def test_core_imports_no_frontend_backend_server_library_or_framework(module):
    foreign = {name.split(".")[0] for name in GRAPH[module]}

    known = {"core", "__future__"} | OUTSIDE
    standard = set(__import__("sys").stdlib_module_names)
    assert foreign - known - standard == set()


@pytest.mark.parametrize("module", CORE)
def test_inside_core_imports_go_downwards_only(module):
    upwards = {
        name
        for name in GRAPH[module]
        if name.split(".")[0] == "core" and floor(name) > floor(module)
    }

    assert upwards == set()


@pytest.mark.parametrize("module", sorted(set(SOURCES) - set(CORE)))
def test_a_frontend_imports_core_and_no_backend(module):
    names = {name for name in GRAPH[module] if name.split(".")[0] in ("core", "frontends")}
    inner = {
        name
        for name in names
        if name.startswith(("core.pipeline", "core.lifecycle", "core.repository", "core.plugins"))
    }

    package = ".".join(module.split(".")[:2])
    if package != READS_ALL:
        assert inner <= STARTS_A_SERVER.get(package, set())
    assert not any(name.startswith("backend_") for name in GRAPH[module])


def test_core_names_no_backend_of_this_project():
    names = set()
    for file in tracked("backends/*/pyproject.toml", "plugins/*/pyproject.toml"):
        text = file.read_text()
        if '"core.backends"' not in text and '"core.formats"' not in text:
            continue
        # Names of backends, formats with their files, and the platform words behind them.
        names.update(re.findall(r'^name = "([\w-]+)"', text, re.MULTILINE))
        for group in ("core.backends", "core.formats"):
            entries = text.partition(f'[project.entry-points."{group}"]')[2].partition("\n[")[0]
            names.update(re.findall(r'^"?([\w.-]+)"? = ', entries, re.MULTILINE))
            if group == "core.formats":
                names.update(re.findall(r'"\w+:(\w+)', entries))
    names -= {"NAME", "backend-NAME"}
    names.update({name.replace("-", "_") for name in names})

    found = {
        (str(path.relative_to(ROOT)), word)
        for path in tracked("core/*.py", "core/**/*.py", "core/**/*.pyx")
        for text in literals(path)
        for word in names.intersection(re.findall(r"[\w.-]*\w", re.sub("python -[mP]", "", text)))
    }

    assert {"onnxruntime", "model.onnx", "backend_python", "tensorrt_plan"} <= names
    assert found == {(file, word) for file, (word, _) in NAMED_BY_CORE.items()}


def literals(path):
    """The strings in a file, without docstrings."""
    if path.suffix == ".pyx":
        return re.findall(
            r"'[^'\n]*'|\"[^\"\n]*\"", re.sub(r'""".*?"""', "", path.read_text(), flags=re.S)
        )
    tree = ast.parse(path.read_text())
    prose = {
        id(each.value)
        for node in ast.walk(tree)
        for each in (node.body if isinstance(getattr(node, "body", None), list) else ())
        if isinstance(each, ast.Expr)
    }
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [each.value for each in strings if isinstance(each.value, str) and id(each) not in prose]


def test_a_frontend_imports_no_other_frontend():
    def owner(module):
        return module.split(".")[1] if module.count(".") else ""

    across = {
        (module, name)
        for module in set(SOURCES) - set(CORE)
        for name in GRAPH[module]
        if name.startswith("frontends.") and owner(name) not in (owner(module), *SHARED)
    }

    # The port of metrics is one of HTTP; `flags` registers all flags, `pages` describes them; `own_ports`
    # has the secrets of both protocols; `core serve` tells the terminal what its user has named.
    assert across == {
        *(
            ("frontends.metrics.frontend", f"frontends.http.{name}")
            for name in ("interceptors", "listener", "message", "options", "router")
        ),
        ("frontends.metrics.options", "frontends.http.options"),
        ("frontends.pages", "frontends.flags"),
        ("frontends.own_ports", "frontends.grpc.interceptors"),
        ("frontends.own_ports", "frontends.grpc.options"),
        ("frontends.own_ports", "frontends.http.options"),
        ("frontends.commands.serve", "frontends.terminal"),
        *(
            ("frontends.flags", f"frontends.{name}.options")
            for name in ("grpc", "http", "memory", "metrics", "terminal")
        ),
    }


def test_the_command_line_imports_no_library_of_a_server():
    program = "import sys; from core import serve; serve.main(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert {"frontends.http.options", "frontends.grpc.options"} <= set(done.stdout.split())
    assert {"aiohttp", "grpc"} & set(done.stdout.split()) == set()


def test_a_distribution_imports_neither_frontends_nor_internals_of_core():
    wrong = [
        (str(path.relative_to(ROOT)), name)
        for path in tracked(*(f"{group}/**/*.py" for group in DISTRIBUTIONS))
        if not {"tests", "core_testing"} & set(path.parts)  # the contract tests look inside
        for name in imports(path)
        if not name.startswith(
            EXTENDS_A_FRONTEND.get("/".join(path.relative_to(ROOT).parts[:2]), "-")
        )
        if name.startswith(
            ("frontends", "core.pipeline", "core.lifecycle", "core.repository.", "core.serve")
        )
        # What `core.repository` itself names is for plugins that bring repositories.
        or (name == "core.repository" and path.relative_to(ROOT).parts[0] != "plugins")
    ]

    assert wrong == []


def test_a_client_imports_no_module_of_a_server():
    wrong = [
        (str(path.relative_to(ROOT)), name)
        for path in tracked("clients/**/*.py")
        for name in imports(path)
        if name.split(".")[0] in ("core", "frontends") or name.startswith("backend_")
    ]

    assert wrong == []


def test_no_import_goes_round_in_a_circle():
    done, path = set(), []

    def walk(module):
        if module in path:
            raise AssertionError(" → ".join([*path[path.index(module) :], module]))
        if module in done or module not in GRAPH:
            return
        path.append(module)
        for name in sorted(GRAPH[module]):
            # The package `core` imports its nouns; a noun that imports `core` finds it half made,
            # which is fine for its name alone.
            if name != "core":
                walk(name)
        path.pop()
        done.add(module)

    for module in sorted(GRAPH):
        walk(module)


def test_cython_is_written_in_the_folders_named_native_only():
    homes = {
        ROOT / "core/native",
        *(ROOT / f"frontends/{name}/native" for name in ("shared", "http", "grpc")),
    }

    assert [str(path.relative_to(ROOT)) for path in COMPILED if path.parent not in homes] == []


def test_every_compiled_module_has_a_type_stub():
    assert [path.name for path in COMPILED if not path.with_suffix(".pyi").exists()] == []


def test_no_file_or_folder_has_a_name_without_meaning():
    assert [
        str(path.relative_to(ROOT))
        for path in tracked("*.py", "*.pyx")
        if FORBIDDEN_NAMES & {part.lower() for part in path.relative_to(ROOT).with_suffix("").parts}
    ] == []


def test_no_file_is_too_long_to_read():
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in tracked("*.py", "*.pyx")
        if "tests" not in path.parts  # a file of tests is a list
    }

    assert {path: lines for path, lines in lengths.items() if lines > LONGEST} == {}


def test_the_paths_in_the_architecture_page_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    # A path begins with a folder of the checkout; names relative to one, such as `auto.py`, are skipped.
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named = {
        each for each in re.findall(r"`([\w./-]+/[\w./-]+)`", text) if each.split("/")[0] in tops
    }

    assert len(named) > 40
    assert sorted(each for each in named if not (ROOT / each).exists()) == []


def test_the_architecture_page_names_every_module_that_leaves_the_interpreter_lock():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| what runs without the GIL")]

    leave = [
        str(path.relative_to(ROOT))
        for path in tracked("core/**/*.pyx", "frontends/**/*.pyx", "backends/**/*.pyx")
        if "with nogil" in path.read_text() and "backends/testing" not in str(path)
    ]

    assert [path for path in leave if not any(f"`{path}`" in row for row in rows)] == []


@pytest.mark.parametrize("group", DISTRIBUTIONS)
def test_a_distribution_has_no_package_above_its_own(group):
    assert tracked(f":(glob){group}/__init__.py", f":(glob){group}/*/__init__.py") == []
