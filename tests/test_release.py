"""What an index, and a person who installs from wheels, gets of each distribution."""

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
FOLDERS = [".", *subprocess.check_output([ROOT / ".ci" / "distributions"], text=True).split()]
SDIST = "import sys; from {} import build_sdist; print(build_sdist(sys.argv[1]))"


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module", params=FOLDERS)
def metadata(request, tmp_path_factory):
    """Return the metadata of a source distribution; its wheels have the same."""
    folder = ROOT / request.param
    backend = tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]
    into = tmp_path_factory.mktemp("sdist")
    program = [sys.executable, "-c", SDIST.format(backend["build-backend"]), into]
    subprocess.run(program, cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(into.glob("*.tar.gz"))) as archive:
        (member,) = (
            each
            for each in archive.getmembers()
            if each.name.count("/") == 1 and each.name.endswith("/PKG-INFO")
        )
        file = archive.extractfile(member)
        assert file is not None
        return email.message_from_bytes(file.read())


def test_an_index_gets_what_it_shows(metadata):
    assert metadata["Summary"] and metadata["Keywords"] and metadata["Author"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    labels = {url.partition(",")[0] for url in metadata.get_all("Project-URL")}
    assert labels == {"Homepage", "Documentation", "Source", "Issues"}
    minors = {f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)}
    assert minors <= set(metadata.get_all("Classifier"))


def test_every_classifier_is_one_of_an_index(metadata):
    known = pytest.importorskip("trove_classifiers").classifiers

    assert set(metadata.get_all("Classifier")) <= known


def test_the_page_of_an_index_has_no_relative_link(metadata):
    links = re.findall(r"\]\(([^)\s]+)|(?:src|href)=\"([^\"]+)", metadata.get_payload())

    assert [link for link in map("".join, links) if not re.match(r"\w+:|#", link)] == []


def test_all_distributions_have_one_home_and_one_version():
    homes = {project(folder)["urls"]["Homepage"] for folder in FOLDERS}

    assert len(homes) == 1
    assert len({project(folder)["version"] for folder in FOLDERS}) == 1
    for folder in FOLDERS:
        source = project(folder)["urls"]["Source"]
        assert source == f"{homes.copy().pop()}/source" + ("" if folder == "." else f"/{folder}")


def test_wheels_of_an_index_are_configured_for_every_python_that_the_metadata_names():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]

    minors = re.findall(r"Python :: 3\.(\d+)", str(project(".")["classifiers"]))
    assert tool["build"].split() == [f"cp3{minor}-*" for minor in minors]
    assert tool["linux"]["archs"] == ["x86_64", "aarch64"]
    assert (ROOT / tool["linux"]["before-all"].removeprefix("bash {project}/")).is_file()


def test_no_text_installs_our_distributions_from_an_index_where_they_are_not():
    names = "|".join(project(folder)["name"] for folder in FOLDERS)
    command = re.compile(rf"pip install ['\"]?(?:{names})(?![\w*.-])[^\n]*")
    tracked = subprocess.check_output(["git", "ls-files", "*.md", "*.py"], cwd=ROOT, text=True)

    found = [
        f"{name}: {line}"
        for name in tracked.split()
        if name != "CHANGELOG.md" and (ROOT / name).is_file()
        for line in command.findall((ROOT / name).read_text())
    ]
    assert found == []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a small wheel with a compiled module, and of its source distribution."""
    folder = tmp_path_factory.mktemp("made")
    common = ["--no-isolation", "--skip-dependency-check", "--outdir", folder, "backends/fil"]
    pytest.importorskip("build")
    subprocess.run(
        [sys.executable, "-m", "build", *common], cwd=ROOT, check=True, capture_output=True
    )
    return folder


def test_a_source_distribution_builds_a_wheel_with_all_modules_and_no_source(made):
    """`python -m build` makes the wheel from the source distribution, not from the checkout."""
    (source,) = made.glob("*.tar.gz")
    (wheel,) = made.glob("*.whl")

    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if name.startswith("backend_fil/")}
    modules = {name for name in packed if re.fullmatch(r"backend_fil/.*\.py(\.typed)?", name)}
    assert "CMakeLists.txt" in packed and modules
    assert modules <= installed
    assert [name for name in installed if re.search(r"forest\.cpython.*\.so$", name)]
    assert not [name for name in installed if name.endswith((".pyx", ".hpp"))]


def test_twine_accepts_both(made):
    pytest.importorskip("twine")

    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *made.iterdir()],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout


def test_a_repaired_wheel_holds_its_libraries(made, tmp_path):
    pytest.importorskip("auditwheel")
    (wheel,) = made.glob("*.whl")

    subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", tmp_path, wheel],
        check=True,
        capture_output=True,
        env={"PATH": str(Path(sys.executable).parent)},
    )

    (repaired,) = tmp_path.glob("*.whl")
    minors = re.findall(r"manylinux_2_(\d+)", repaired.name)
    assert minors and min(map(int, minors)) <= 28  # the oldest glibc that it runs on
