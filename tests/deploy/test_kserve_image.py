"""The images that docs/operate/kserve.md builds: they hold what the runtimes of KServe promise."""

import functools
import re
import subprocess
import sys

import pytest
import yaml

from tests.deploy.kserve_sdk.objects import FORMATS, ROOT, RUNTIMES, SERVICES, of_kind, runtimes

PAGE = (ROOT / "docs" / "operate" / "kserve.md").read_text()
EXAMPLE = ROOT / "examples" / "kserve"
ADAPTERS = ROOT / "plugins" / "adapters" / "core_adapters"
NOT_A_FORMAT = {"mlserver"}  # the library of MLServer's folders, which no format is for
DISTRIBUTIONS = {"xgboost": "xgboost-cpu"}  # the same module, without gigabytes of CUDA
FIRST, OTHER = re.findall(r"^docker build -f deploy/docker/Dockerfile.*?^```", PAGE, re.M | re.S)
NAMES = [name for name in FORMATS if name != "triton"]  # a repository: the backends of its models


def built(command):
    """Return name → words of the arguments of a `docker build`."""
    pairs = re.findall(r'--build-arg ([A-Z]+)="([^"]*)"', command)
    return {name: set(words.split()) for name, words in pairs}


@functools.cache
def readers():
    """Return (folder, file) of the entry points `core.formats` in the sources of backends and plugins."""
    found = []
    for path in [*ROOT.glob("backends/[a-z]*/*.toml"), *ROOT.glob("plugins/[a-z]*/*.toml")]:
        rest = path.read_text().partition('[project.entry-points."core.formats"]\n')[2]
        names = re.findall(r'^"?([^"\n=]+?)"? = ', rest.partition("\n\n")[0], re.M)
        found += [(f"{path.parts[-3]}/{path.parts[-2]}", each) for each in names]
    return found


def folders(name):
    """Return the folders of backends and plugins that read the files of a format."""
    parts = {part for path in FORMATS[name] for part in path.split("/")}
    return {folder for folder, file in readers() if file in parts}


def held(command):
    """Return the folders of backends and plugins that an image has."""
    given = built(command)
    return {f"{group.lower()}/{each}" for group in ("BACKENDS", "PLUGINS") for each in given[group]}


def chosen(text, name):
    """Return whether KServe chooses core for a format, for each of its versions."""
    found = [each for each in yaml.safe_load_all(text) if each["metadata"]["name"] == "core"]
    rows = found[0]["spec"]["supportedModelFormats"]
    return [each.get("autoSelect", False) for each in rows if each["name"] == name]


@pytest.mark.parametrize("name", NAMES)
def test_core_is_chosen_only_for_formats_that_the_image_of_the_page_reads(name):
    needed = folders(name)

    assert needed
    if any(chosen(RUNTIMES.read_text(), name)):
        assert needed <= held(FIRST)


def test_a_repository_stays_with_a_runtime_that_has_a_priority():
    """KServe prefers each runtime with a priority to one without."""
    rows = [
        each
        for runtime in runtimes().values()
        for each in runtime["spec"]["supportedModelFormats"]
        if each["name"] == "triton"
    ]

    assert rows and not any("priority" in each for each in rows)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_says_which_backends_a_format_lacks(name):
    rows = re.findall(rf"- {{name: {name}, .*?}}(?:  # (.*))?$", RUNTIMES.read_text(), re.M)

    lacking = ", ".join(sorted(each.rpartition("/")[2] for each in folders(name) - held(FIRST)))
    assert rows and set(rows) == {lacking}
    assert not lacking or f"`{name}`" in PAGE.partition("## Other formats")[2].partition("\n##")[0]


def test_the_commands_for_another_format_build_its_backend_and_let_kserve_choose_core():
    (name,) = (each.rpartition("/")[2] for each in held(OTHER) - held(FIRST))
    assert folders(name) <= held(OTHER) and not any(chosen(RUNTIMES.read_text(), name))
    script = OTHER[OTHER.index("sed ") : OTHER.index(" | kubectl")]

    done = subprocess.run(
        ["sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert all(chosen(done.stdout, name))
    others = [each for each in NAMES if each != name]
    before = RUNTIMES.read_text()
    assert [each for each in others if chosen(done.stdout, each) != chosen(before, each)] == []


def test_the_image_has_each_library_that_a_format_of_adapters_imports():
    sources = "".join(path.read_text() for path in ADAPTERS.glob("*.py"))
    named = set(re.findall(r'\bneeded\("[\w.]+", "([\w-]+)"', sources)) - NOT_A_FORMAT

    assert {"scikit-learn", "xgboost", "lightgbm", "skops"} <= named
    assert built(FIRST)["PACKAGES"] == {DISTRIBUTIONS.get(each, each) for each in named}


def programs():
    """Return the containers of the transformers and explainers of the services."""
    specs = [each["spec"] for each in of_kind(SERVICES, "InferenceService").values()]
    parts = [spec[part] for spec in specs for part in ("transformer", "explainer") if part in spec]
    return [each for part in parts for each in part["containers"]]


def test_the_page_builds_the_image_of_transformers_and_explainers():
    images = {each["image"] for each in programs()}
    built_images = re.findall(
        r"^docker build -t registry\.example/(\S+) examples/kserve$", PAGE, re.M
    )

    assert len(images) == 1 and set(built_images) == images
    for each in images:
        assert f"'s|image: {each.partition(':')[0]}:|image: registry.example/" in PAGE


def test_that_image_has_the_programs_and_what_they_import():
    lines = (EXAMPLE / "Dockerfile").read_text().splitlines()
    (copied,) = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    (installed,) = [line for line in lines if "pip install" in line]

    commands = [each["command"] for each in programs()]
    assert {python for python, _ in commands} == {"python"}
    assert {program for _, program in commands} == set(copied)
    texts = "".join((EXAMPLE / each).read_text() for each in copied)
    modules = set(re.findall(r"^(?:import|from) (\w+)", texts, re.M)) - sys.stdlib_module_names
    packages = {{"PIL": "pillow"}.get(each, each) for each in modules}
    assert packages <= set(re.findall(r"[a-z]+", installed))
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001:10001"]
