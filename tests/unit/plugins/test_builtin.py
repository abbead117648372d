"""Built-in parts come after plugins, and an extra of core installs a missing one."""

import os
import subprocess
import sys

import pytest

import core
from core import plugins
from core.caches import Cache, LocalCache, open_cache
from core.options import Options
from core.repository import FolderRepository, open_repositories
from core.repository.agents import known
from core.repository.agents.checksum import ChecksumAgent


class Folder(FolderRepository):
    pass


class Agent(core.RepositoryAgent):
    pass


class Plugin:
    """Takes over every name that core opens itself."""

    @core.hookimpl
    def core_open_cache(self, name, settings):
        return Cache() if name == "local" else None

    @core.hookimpl
    def core_open_repository(self, url):
        return Folder("/") if url == "file:///models" else None

    @core.hookimpl
    def core_open_repository_agent(self, name):
        return Agent() if name == "checksum" else None


@pytest.fixture
def plugin():
    found = Plugin()
    plugins.hooks().register(found)
    yield
    plugins.hooks().unregister(found)


def cache():
    return open_cache({"local": {"size": "1024"}})


def repository():
    (found,) = open_repositories(Options.defaults(model_repository=["file:///models"]))
    return found


def agent():
    found = known.find_agent("checksum")
    origin = "built in" if type(found) is ChecksumAgent else "plugin"
    assert known.agents_used() == [("checksum", origin)]
    return found


@pytest.mark.parametrize(
    "opened, built_in",
    [(cache, LocalCache), (repository, FolderRepository), (agent, ChecksumAgent)],
)
def test_a_plugin_takes_precedence_over_a_built_in_part(opened, built_in, request, monkeypatch):
    monkeypatch.setattr(known, "_found", {})
    assert type(opened()) is built_in
    known._found.clear()

    request.getfixturevalue("plugin")

    assert type(opened()) is not built_in


@pytest.mark.parametrize(
    "distribution, code, error",
    [
        (
            "core-redis-cache",
            "from core.caches import open_cache; open_cache({'redis': {}})",
            "no cache named 'redis': it is not built in, and no plugin brings it; "
            "try: pip install --find-links wheels 'core[redis]'",
        ),
        (
            "core-cloud",
            "from core.options import Options; from core.repository import open_repositories; "
            "open_repositories(Options.defaults(model_repository=['gs://bucket/models']))",
            "model repository 'gs://bucket/models': no plugin opens URLs of gs://; "
            "try: pip install --find-links wheels 'core[gs]'",
        ),
        (
            "core-platforms",
            "from core import options, plugins; "
            "options.parse(['--allow-sagemaker=true'], plugins.flags())",
            "unrecognized option '--allow-sagemaker=true'; "
            "try: pip install --find-links wheels 'core[sagemaker]'",
        ),
        (
            "core-platforms",
            "import core; core.Server(vertex_ai_port=1)",
            "a server has no option 'vertex_ai_port'; try: pip install --find-links wheels 'core[vertex-ai]'",
        ),
        (
            "core-encryption",
            "from core.repository.agents.known import find_agent; find_agent('decrypt')",
            "unable to find repository agent 'decrypt': it is not built in, no plugin brings it, and there "
            "is no <name>/agent.py in ''; try: pip install --find-links wheels 'core[decrypt]'",
        ),
    ],
)
def test_a_missing_plugin_of_this_project_is_named_by_its_extra(distribution, code, error):
    done = subprocess.run(
        [sys.executable, "-c", f"from core import plugins; plugins.load_hooks(); {code}"],
        env={**os.environ, "CORE_BLOCK": distribution},
        capture_output=True,
        text=True,
    )

    assert done.stderr.splitlines()[-1].endswith(error)


def test_a_name_without_an_extra_has_no_hint():
    assert plugins.install_hint("nothing") == ""
