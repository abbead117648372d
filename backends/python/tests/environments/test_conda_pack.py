"""Archives that conda-pack itself has made, of an environment as conda leaves it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

conda_pack = pytest.importorskip("conda_pack")
# It knows no package cache of conda's to compare with.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:conda_pack")

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
# Files that no model needs; without them the archive is packed faster.
LEFT_OUT = shutil.ignore_patterns(
    *("test", "tests", "idlelib", "ensurepip", "tkinter", "lib2to3", "turtledemo", "pydoc_data"),
    *("config-*", "site-packages", "__pycache__", "*.a", "*.pyi", "*.h", "lib*_debug*"),
)


def conda_environment(folder, python, version, packages):
    """A folder like conda's: its Python is inside, and conda-meta lists the installed packages."""
    told = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True
    )
    base = Path(told.stdout.strip())
    if base == Path("/usr"):
        pytest.skip(
            "the system's Python lies in several places: no environment of conda's kind can be made of it"
        )
    (folder / "bin").mkdir(parents=True)
    program = folder / f"bin/python{version}"
    shutil.copy2((base / f"bin/python{version}").resolve(), program)
    (folder / "bin/python").symlink_to(program.name)
    library = folder / f"lib/python{version}"
    shutil.copytree(base / f"lib/python{version}", library, symlinks=True, ignore=LEFT_OUT)
    for shared in base.glob(f"lib/libpython{version}.so*"):
        shutil.copy2(shared, folder / "lib" / shared.name, follow_symlinks=False)
    site = library / "site-packages"
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            shutil.copytree(packages / name, site / name, ignore=LEFT_OUT)
    tool = folder / "bin/tool"  # as pip writes the programs of packages
    tool.write_text(f"#!{folder}/bin/python\nimport sys\nprint(sys.prefix)\n")
    tool.chmod(0o755)
    (folder / "etc/where").parent.mkdir()
    (folder / "etc/where").write_text(f"prefix={folder}\n")
    scripts = folder / "etc/conda/activate.d"
    scripts.mkdir(parents=True)
    (scripts / "tells.sh").write_text('export ACTIVATED="$CONDA_PREFIX"\n[ -n "$NO_SUCH" ]\n')
    write_meta(folder, version)
    return folder


def write_meta(folder, version):
    """Write conda-meta as if all files of the folder were of one package that conda's cache has no more."""
    meta = folder / "conda-meta"
    meta.mkdir()
    files = [str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()]
    package = {"name": "python", "version": f"{version}.0", "url": "", "link": {"source": ""}}
    (meta / f"python-{version}.0-0.json").write_text(json.dumps({**package, "files": files}))
    (meta / "history").write_text("")


@pytest.fixture(scope="module")
def packed(tmp_path_factory, interpreter, numpy_of):
    """packed(format) is an archive of an environment of another Python than the server's, if one is
    there; with the version and the place where it was packed."""
    others = [v for v in ("3.12", "3.13", "3.10", "3.9") if v != HERE and interpreter(v)]
    version = others[0] if others else HERE
    python = interpreter(version) or sys.executable
    folder = tmp_path_factory.mktemp("conda") / "envs" / "packed"
    conda_environment(folder, python, version, numpy_of(version))

    def packed(kind):
        archive = folder.parent.parent / f"environment.{kind}"
        if not archive.exists():
            conda_pack.pack(prefix=str(folder), output=str(archive), compress_level=1)
        return archive, version, folder

    yield packed
    shutil.rmtree(folder.parent)


WHERE = """
    def initialize(self, args):
        told = subprocess.run(["tool"], capture_output=True, text=True, check=True)
        maps = open("/proc/self/maps").read()
        self.told = {
            "version": "%d.%d" % sys.version_info[:2],
            "prefix": sys.prefix,
            "numpy": np.__file__,
            "where": open(sys.prefix + "/etc/where").read(),
            "tool": told.stdout.strip(),
            "libraries": sorted({line.split()[-1] for line in maps.splitlines() if "libpython" in line}),
            "environment": dict(os.environ),
        }

    def execute(self, requests):
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", np.array([json.dumps(self.told)], np.object_))
        ]) for _ in requests]
"""


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
async def test_a_model_runs_in_an_archive_of_conda_pack(
    serve, folder, packed, kind, cache, runs_in, monkeypatch
):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    archive, version, before = packed(kind)
    folder.mkdir()
    (folder / archive.name).symlink_to(archive)
    path = f"$$TRITON_MODEL_DIRECTORY/{archive.name}"

    model = await serve(WHERE, runs_in(path), datatype="BYTES")
    answer = await model.ask({"x": np.array([b"x"], object)})

    told = json.loads(answer.output("y").array[0])
    (unpacked,) = cache.glob("archive-*/")
    here = str(unpacked)
    assert told["version"] == version
    assert told["prefix"] == told["tool"] == here
    assert told["numpy"].startswith(f"{here}/lib/python{version}/site-packages/")
    assert told["where"] == f"prefix={here}\n"  # conda-unpack has put the new place there
    assert all(each.startswith(here) for each in told["libraries"])
    environment = told["environment"]
    assert environment["CONDA_PREFIX"] == environment["ACTIVATED"] == here
    assert environment["PATH"].split(":")[0] == f"{here}/bin"
    assert environment["LD_LIBRARY_PATH"] == f"{here}/lib:/mine"
    assert str(before) not in json.dumps(told)
