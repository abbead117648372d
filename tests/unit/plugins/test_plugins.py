"""Plugins of distributions that are really there: folders with metadata, on the path."""

import contextlib
import logging
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from core import plugins
from core.__main__ import main
from core.errors import CoreError, Kind
from core.plugins import calls, missing

BACKEND = "import core\n\nbackend = core.Backend(instance=core.ModelInstance)\n"


def refused(name):
    with pytest.raises(CoreError) as error:
        plugins.backend(name)
    return error.value


def test_a_backend_is_found_by_the_name_of_its_entry_point(install):
    install("backend-plug", "[core.backends]\nplug = plug_a:backend\n", {"plug_a": BACKEND})

    found = plugins.backend("plug")

    assert found is sys.modules["plug_a"].backend
    assert found.name == "plug"
    assert plugins.backend("plug") is found


def test_a_backend_is_imported_on_first_use(install):
    install("backend-plug", "[core.backends]\nplug = plug_b:backend\n", {"plug_b": BACKEND})

    assert "plug" in plugins.available_backends()
    assert "plug_b" not in sys.modules
    assert "plug" not in plugins.imported()

    plugins.backend("plug")

    assert "plug_b" in sys.modules
    assert plugins.imported()["plug"][0].distribution == "backend-plug 1.0"


def test_two_names_of_one_backend_are_one_backend(install):
    install(
        "backend-plug",
        "[core.backends]\nplug = plug_c:backend\nplug2 = plug_c:backend\n",
        {"plug_c": BACKEND},
    )

    assert plugins.backend("plug") is plugins.backend("plug2")
    assert plugins.aliases("plug2") == ["plug", "plug2"]
    assert plugins.aliases("absent") == ["absent"]


def test_an_unknown_backend_lists_the_installed_ones_and_advice(install):
    install("backend-plug", "[core.backends]\nplug = plug_d:backend\n", {"plug_d": BACKEND})

    error = refused("hugectr")

    assert error.kind is Kind.INVALID
    assert error.message.startswith("no backend named 'hugectr' (installed: ")
    assert "plug" in error.message
    assert error.message.endswith("); this project does not support it; convert the model to ONNX")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tensorrt", "; it is in the distribution backend-tensorrt"),
        ("onnx", "; it is in the distribution backend-onnx"),
        ("plug_n", "; did you mean 'plug_near'?"),
        ("Python", "; did you mean 'python'? It is in the distribution backend-python"),
        ("pyton", "; did you mean 'python'? It is in the distribution backend-python"),
        ("tensorflow", "; it is in the distribution backend-tensorflow"),
        ("paddle", "; it is in the distribution backend-paddle"),
        ("tensorrt_llm", "; this project does not support it"),
        ("whatever", ""),
    ],
)
def test_advice_for_a_backend_names_only_distributions_of_this_project(name, text):
    assert missing.hint(name, ["plug_near"]) == text


def test_the_extras_of_core_name_every_backend_and_all_formats_of_this_project():
    root = Path(__file__).parents[3]
    projects, formats = {}, []
    for file in [
        *root.glob("backends/[!_]*/pyproject.toml"),
        *root.glob("plugins/*/pyproject.toml"),
    ]:
        text = file.read_text()
        name = re.search(r'^name = "(.*)"', text, re.MULTILINE)[1]
        entries = text.partition('[project.entry-points."core.backends"]')[2].partition("\n[")[0]
        projects.update(dict.fromkeys(re.findall(r"^(\w+) = ", entries, re.MULTILINE), name))
        if '"core.process_host"' in text:
            projects[missing.PROCESS_HOST] = name
        if '"core.formats"' in text:
            formats.append(name)

    assert projects == missing.distributions()
    assert sorted(formats) == sorted(missing._backend_extras()[missing.FORMATS])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["1.txt", "model.onnx"], "; try: pip install --find-links wheels 'core[onnx]'"),
        (["tensorrt_plan"], "; try: pip install --find-links wheels 'core[tensorrt]'"),
        (
            ["x.bin"],
            "; not installed are backend-onnx, backend-tensorrt; "
            "try: pip install --find-links wheels 'core[formats]'",
        ),
    ],
)
def test_packages_for_files_of_unknown_formats_are_named(monkeypatch, names, text):
    absent = {"backend-onnx", "backend-tensorrt"}
    monkeypatch.setattr(missing, "is_installed", lambda name: name not in absent)

    assert missing.advice(names) == text


def test_without_missing_formats_there_is_no_advice(monkeypatch):
    monkeypatch.setattr(missing, "is_installed", lambda name: True)

    assert missing.advice(["model.onnx"]) == ""


def test_a_backend_that_cannot_be_imported_names_its_distribution_and_the_reason(install):
    install(
        "backend-plug",
        "[core.backends]\nplug = plug_e:backend\n",
        {"plug_e": "import no_such_thing"},
    )

    assert refused("plug").message == (
        "backend 'plug' of backend-plug 1.0 cannot be imported at plug_e.py:1: "
        "ModuleNotFoundError: No module named 'no_such_thing'"
    )


def test_a_name_that_two_distributions_bring_is_refused_naming_both(install):
    for name in ("backend-plug", "other-plug"):
        install(name, "[core.backends]\nplug = plug_f:backend\n", {"plug_f": BACKEND})

    message = refused("plug").message

    assert "backend 'plug' comes from two distributions" in message
    assert "backend-plug 1.0" in message and "other-plug 1.0" in message


def test_an_object_that_is_no_backend_is_refused(install):
    install("backend-plug", "[core.backends]\nplug = plug_g:backend\n", {"plug_g": "backend = 5"})

    assert refused("plug").message == (
        "backend 'plug' of backend-plug 1.0: 'plug_g:backend' is a int, not a core.Backend"
    )


def test_a_plugin_can_be_hidden_by_name(install, monkeypatch):
    install("backend-plug", "[core.backends]\nplug = plug_h:backend\n", {"plug_h": BACKEND})
    monkeypatch.setenv("CORE_BLOCK", "other, plug")

    assert "plug" not in plugins.available_backends()
    assert "(CORE_BLOCK hides it)" in refused("plug").message


def test_a_distribution_can_be_hidden_so_that_another_one_has_the_name(install, monkeypatch):
    for name in ("backend-plug", "other-plug"):
        install(name, "[core.backends]\nplug = plug_i:backend\n", {"plug_i": BACKEND})
    monkeypatch.setenv("CORE_BLOCK", "other-plug")

    assert plugins.available_backends()["plug"].distribution == "backend-plug 1.0"
    assert plugins.backend("plug").name == "plug"


def test_hooks_of_a_plugin_are_called(install):
    install(
        "hooks-plug",
        "[core.plugins]\nplug = plug_i\n",
        {
            "plug_i": "import core\nseen = []\n\n"
            "@core.hookimpl\ndef core_server_stopping(server):\n    seen.append(server)\n"
        },
    )

    plugins.load_hooks()
    plugins.hooks().hook.core_server_stopping(server="s")

    assert sys.modules["plug_i"].seen == ["s"]


def test_a_misspelled_hook_is_an_error(install):
    install(
        "hooks-plug",
        "[core.plugins]\nplug = plug_j\n",
        {"plug_j": "import core\n\n@core.hookimpl\ndef core_server_startign(server): ...\n"},
    )

    with pytest.raises(CoreError) as caught:
        plugins.load_hooks()

    assert caught.value.message == (
        "plugin 'plug' has a hook that does not exist: 'core_server_startign'; "
        "did you mean 'core_server_starting'?"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "@core.hookimpl\ndef core_layers(modle): ...\n",
            "plugin 'plug': hook core_layers has no argument 'modle'; did you mean 'model'?",
        ),
        (
            "@core.hookimpl\ndef core_batch_done(timing, xyz): ...\n",
            "plugin 'plug': hook core_batch_done has no argument 'xyz'; there are model, timing",
        ),
        (
            "def core_layers(model): ...\n",
            "plugin 'plug': core_layers is no hook without @core.hookimpl above it",
        ),
    ],
)
def test_a_hook_that_core_cannot_call_is_an_error_and_nothing_of_it_is_active(
    install, text, message
):
    adds = "@core.hookimpl\ndef core_add_options(parser): ...\n"
    install(
        "hooks-plug", "[core.plugins]\nplug = plug_q\n", {"plug_q": f"import core\n{adds}{text}"}
    )

    for _ in range(2):  # not only the first time
        with pytest.raises(CoreError) as caught:
            plugins.load_hooks()
        assert caught.value.message == message
    assert not plugins.hooks().has_plugin("plug")


def test_a_hook_takes_the_arguments_that_it_needs(install):
    text = (
        "import core\n\n"
        "@core.hookimpl\ndef core_batch_done(timing, *, seen=[]): ...\n"
        "@core.hookimpl(specname='core_failed')\ndef noted(error): ...\n"
    )
    install("hooks-plug", "[core.plugins]\nplug = plug_r\n", {"plug_r": text})

    plugins.load_hooks()

    assert plugins.listens("core_batch_done")
    assert plugins.listens("core_failed")


def test_a_missing_object_of_an_entry_point_is_named_with_the_nearest(install):
    install(
        "backend-plug",
        "[core.backends]\nplug = plug_s:backend\n",
        {"plug_s": BACKEND.replace("backend =", "bakend =")},
    )

    assert refused("plug").message.endswith(
        "AttributeError: module 'plug_s' has no attribute 'backend'; did you mean 'bakend'?"
    )


def test_a_misspelled_hook_of_a_backend_fails_the_models_that_ask_for_it(install):
    text = BACKEND.replace(
        "backend = core.Backend",
        "class Mine(core.Backend):\n    @core.hookimpl\n    def core_modle_changed(self): ...\n\n"
        "backend = Mine",
    )
    install("backend-plug", "[core.backends]\nplug = plug_n:backend\n", {"plug_n": text})

    assert "did you mean 'core_model_changed'?" in refused("plug").message
    assert (
        "did you mean 'core_model_changed'?" in refused("plug").message
    )  # not only the first time


def test_a_plugin_is_registered_once_however_often_hooks_are_loaded(install):
    text = "import core\nseen = []\n\n@core.hookimpl\ndef core_server_stopping(server):\n    seen.append(1)\n"
    install("hooks-plug", "[core.plugins]\nplug = plug_o\n", {"plug_o": text})

    for _ in range(3):
        plugins.load_hooks()
    plugins.ask("core_server_stopping", server="s")

    assert sys.modules["plug_o"].seen == [1]


def test_a_plugin_is_registered_once_by_threads_that_need_it_at_the_same_time():
    begun = threading.Barrier(2)
    checked = set()

    class Slow:
        """A plugin that a second thread may check before the first one has registered it."""

        def __dir__(self):
            checked.add(threading.get_ident())
            with contextlib.suppress(threading.BrokenBarrierError):
                begun.wait(0.2)
            return []

    plugin = Slow()
    calls.hooks()
    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(calls.register, plugin, "slow") for _ in range(2)]
    try:
        assert [each.exception() for each in done] == [None, None]
        assert len(checked) == 1
        assert calls.hooks().is_registered(plugin)
    finally:
        calls.hooks().unregister(plugin)


def test_the_listing_shows_plugins(install, capsys):
    install("hooks-plug", "[core.plugins]\nplug = plug_p\n", {"plug_p": ""})

    main(["plugins"])

    assert re.search(
        r"plugins:\n(?: .*\n)* +plug +hooks-plug 1\.0 +ok$", capsys.readouterr().out, re.MULTILINE
    )


def test_a_plugin_that_cannot_be_imported_is_left_out_with_an_error(install, caplog):
    install("hooks-plug", "[core.plugins]\nplug = plug_k\n", {"plug_k": "1 / 0"})

    with caplog.at_level(logging.ERROR, "core"):
        plugins.load_hooks()

    assert "plugin 'plug' is left out" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_listing_shows_versions_and_health(install, capsys):
    install("backend-plug", "[core.backends]\nplug = plug_l:backend\n", {"plug_l": BACKEND})
    install("backend-plugged", "[core.backends]\nplugged = plug_m:backend\n", {"plug_m": "1 / 0"})

    status = main(["plugins"])

    shown = capsys.readouterr().out
    assert "backend ABI 1" in shown
    assert re.search(r"^ +plug +backend-plug 1\.0 +ok$", shown, re.MULTILINE)
    assert "ZeroDivisionError: division by zero" in shown
    assert status == 1


def test_the_folders_of_distributions_are_walked_once_for_all_groups(install, monkeypatch):
    install("plug-alpha", "[core.backends]\nplug_alpha = plug_alpha_module:backend\n", {})
    walks = []
    walk = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda: walks.append(1) or walk())

    assert "plug_alpha" in plugins.available_backends()
    assert "http" in plugins.frontends()
    plugins.load_hooks()

    assert len(walks) == 1


def test_whether_a_backend_is_there_is_known_without_importing_it(install, tmp_path, monkeypatch):
    install("backend-plug", "[core.backends]\nplug = plug_a:backend\n", {"plug_a": "1 / 0"})
    (tmp_path / "tells").mkdir()
    (tmp_path / "tells/model.py").touch()
    (tmp_path / "empty").mkdir()

    assert plugins.is_there("plug")
    assert plugins.is_there("tells", str(tmp_path))
    assert not plugins.is_there("tells")
    assert not plugins.is_there("empty", str(tmp_path))

    monkeypatch.setenv("CORE_BLOCK", "tells,plug")
    assert not plugins.is_there("tells", str(tmp_path))


def test_a_folder_is_hidden_like_a_package(tmp_path, monkeypatch):
    (tmp_path / "tells").mkdir()
    (tmp_path / "tells/model.py").touch()
    monkeypatch.setenv("CORE_BLOCK", "tells")

    with pytest.raises(CoreError, match=r"no backend named 'tells' \(CORE_BLOCK hides it\)"):
        plugins.backend("tells", str(tmp_path))
