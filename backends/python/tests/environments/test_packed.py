"""Archives that models run in."""

import asyncio
import shutil
import tarfile
import tempfile
from pathlib import Path

from backend_python import backend

from core import plugins
from core.options import Options
from core.server import InferenceServer


def pack(environment, archive, **files):
    """Write and return an archive of an environment, as conda-pack makes it.

    files   path in the archive → text of further files, which are executable
    """
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(environment, arcname=".")
        for name, text in files.items():
            written = archive.parent / "written"
            written.write_text(text)
            written.chmod(0o755)
            tar.add(written, arcname=name)
    return archive


def script(text):
    return {"bin/conda-unpack": text}


async def test_an_archive_is_unpacked_and_its_interpreter_runs(
    told, same, tmp_path, folder, cache, runs_in
):
    folder.mkdir()
    pack(same, folder / "env.tar.gz")

    where = await told(runs_in("$$TRITON_MODEL_DIRECTORY/env.tar.gz"))

    (unpacked,) = cache.glob("archive-*/")
    assert where["prefix"] == str(unpacked)


def test_conda_unpack_runs_once_where_the_environment_will_stay(
    load, same, tmp_path, cache, runs_in
):
    # It is a Python script, and runs with the interpreter of the archive.
    unpack = "import sys; print('x', file=open(sys.prefix + '/unpacked', 'a'))"
    archive = pack(same, tmp_path / "env.tar.gz", **script(unpack))

    load(tmp_path / "m", "", runs_in(archive)).unload()
    load(tmp_path / "n", "", runs_in(archive)).unload()

    (ran,) = cache.glob("archive-*/unpacked")
    assert ran.read_text() == "x\n"


async def test_the_activate_script_of_an_environment_is_sourced(
    told, same, tmp_path, cache, runs_in
):
    activate = 'export FROM_ACTIVATE="$(basename ${BASH_SOURCE[0]})"'
    archive = pack(same, tmp_path / "env.tar.gz", **{"bin/activate": activate})

    where = await told(runs_in(archive))

    assert where["environment"]["FROM_ACTIVATE"] == "activate"
    # The environment is venv's. Packages such as OpenCV set the variable at their import.
    assert str(cache) not in where["environment"].get("LD_LIBRARY_PATH", "")


async def test_libraries_of_an_environment_that_is_not_venvs_are_found_first(
    told, same, tmp_path, cache, runs_in, monkeypatch
):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    archive = tmp_path / "env.tar"
    with tarfile.open(archive, "w") as tar:
        for name, text in {
            "bin/python": f'#!/bin/sh\nexec {same}/bin/python "$@"\n',
            "bin/activate": "export SEEN_BEFORE=$LD_LIBRARY_PATH\n",
        }.items():
            (tmp_path / "written").write_text(text)
            (tmp_path / "written").chmod(0o755)
            tar.add(tmp_path / "written", arcname=name)

    environment = (await told(runs_in(archive)))["environment"]

    (unpacked,) = cache.glob("archive-*/")
    assert environment["LD_LIBRARY_PATH"] == f"{unpacked}/lib:/mine"
    assert environment["SEEN_BEFORE"] == "/mine"
    assert environment["PATH"].split(":")[0] == f"{unpacked}/bin"


async def test_an_environment_that_was_moved_has_its_new_place(
    told, same, tmp_path, cache, runs_in
):
    where = await told(runs_in(pack(same, tmp_path / "env.tar.gz")))

    (unpacked,) = cache.glob("archive-*/")
    assert where["environment"]["VIRTUAL_ENV"] == str(unpacked)


async def test_a_changed_archive_is_unpacked_again(told, same, tmp_path, cache, runs_in):
    archive = tmp_path / "env.tar.gz"
    for text in ("one", "two"):
        pack(same, archive, **{"which": text})
        prefix = (await told(runs_in(archive)))["prefix"]
        assert (Path(prefix) / "which").read_text() == text

    assert len(list(cache.glob("archive-*/"))) == 2


def test_equal_archives_are_unpacked_once(load, same, tmp_path, cache, runs_in):
    archive = pack(same, tmp_path / "env.tar.gz")
    shutil.copyfile(archive, tmp_path / "other.tar.gz")

    load(tmp_path / "m", "", runs_in(archive)).unload()
    load(tmp_path / "n", "", runs_in(tmp_path / "other.tar.gz")).unload()

    assert len(list(cache.glob("archive-*/"))) == 1


async def test_models_that_load_at_the_same_time_unpack_once(load, same, tmp_path, cache, runs_in):
    archive = pack(
        same,
        tmp_path / "env.tar.gz",
        **script("import sys; open(sys.prefix + '/ran', 'a').write('x')"),
    )
    folders = [tmp_path / f"m{i}" for i in range(4)]

    models = await asyncio.gather(
        *(asyncio.to_thread(load, each, "", runs_in(archive)) for each in folders)
    )

    (ran,) = cache.glob("archive-*/ran")
    assert ran.read_text() == "x"
    for model in models:
        model.unload()


async def test_an_archive_that_leads_outside_is_named_and_leaves_nothing(
    tmp_path, cache, runs_in, refused
):
    archive = tmp_path / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        evil = tarfile.TarInfo("bin/python")
        evil.type, evil.linkname = tarfile.SYMTYPE, "/usr/bin/python3"
        tar.addfile(evil)

    message = await refused(runs_in(archive))

    assert message == (
        f"model 'm': EXECUTION_ENV_PATH '{archive}' entry 'bin/python' is a link to "
        "'/usr/bin/python3', outside of the archive; an environment with such links can be used as a "
        "folder"
    )
    assert list(cache.glob("archive-*/")) == []


async def test_an_archive_that_is_too_large_is_refused(
    same, tmp_path, cache, monkeypatch, runs_in, refused
):
    monkeypatch.setitem(backend.config, "environment-max-byte-size", "1000")

    message = await refused(runs_in(pack(same, tmp_path / "env.tar.gz")))

    assert "holds more than 1000 bytes" in message


async def test_unpacked_files_stay_across_loads_and_end_with_the_server(
    write, same, tmp_path, runs_in, monkeypatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    archive = pack(same, tmp_path / "env.tar.gz", **script("open('ran', 'a').write('x')"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "models/m", "def execute(self, requests): return []")
    (tmp_path / "models/m/config.pbtxt").write_text(f'backend: "python" {runs_in(archive)}')
    options = Options.defaults(
        model_repository=[str(tmp_path / "models")], model_control_mode="explicit"
    )
    server = InferenceServer(options)
    await server.start()

    for _ in range(2):
        await server.models.load("m", {})
        await server.models.unload("m")
        while not all(each["state"] == "UNAVAILABLE" for each in server.manager.index()):
            await asyncio.sleep(0.01)
    assert len(list(temporary.glob("*/archive-*/"))) == 1
    assert (tmp_path / "ran").read_text() == "x"

    await server.stop(10.0)
    plugins.hooks().hook.core_server_stopping(server=server)
    assert list(temporary.glob("*/*")) == []
