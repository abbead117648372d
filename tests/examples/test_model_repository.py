"""What docs/serve/model-repository.md shows, done."""

import re
import shlex
import zipfile
from pathlib import Path

import pytest

from core import __main__ as command
from core import plugins
from core.config import ModelConfig, parse_text
from core.options import Options
from core.repository.agents import AgentModel, known
from frontends.commands.offline import offline_model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve" / "model-repository.md").read_text()
AGENTS = ROOT / "examples" / "folder_agent" / "agents"

LINEAR = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)```", PAGE, re.M | re.S)


def test_the_configuration_of_the_page_is_one():
    [block] = blocks("protobuf")

    agents = parse_text(block, "the page").model_repository_agents.agents

    assert [each.name for each in agents] == ["decrypt", "checksum"]


def test_the_parameters_of_the_page_are_those_of_the_agents():
    from core_encryption.decrypt import _PARAMETERS

    section = PAGE[PAGE.index("### decrypt") : PAGE.index("### Your own")]

    assert set(re.findall(r"^\| `(\w+)` \|", section, re.M)) == set(_PARAMETERS)


def test_the_commands_of_the_page_make_a_model_that_can_be_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "digits" / "1").mkdir(parents=True)
    (tmp_path / "models" / "digits" / "config.pbtxt").write_text(LINEAR)
    (tmp_path / "models" / "digits" / "1" / "model.py").write_text("class TritonPythonModel: ...\n")

    for line in blocks("sh")[0].splitlines():
        words = shlex.split(line)
        if words[0] == "core":
            assert command.main(words[1:]) == 0

    assert not (tmp_path / "encrypted" / "digits" / "1" / "model.py").exists()
    plugins.load_hooks()
    model = offline_model(tmp_path / "encrypted" / "digits", Options.defaults())
    assert model.config.name == "digits"


@pytest.fixture
def archived(tmp_path):
    """Return a model whose version is in an archive."""
    folder = tmp_path / "packed"
    folder.mkdir()
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        archive.writestr("1/model.py", "class TritonPythonModel: ...\n")
    named = 'model_repository_agents { agents [ { name: "unpack" } ] }'
    (folder / "config.pbtxt").write_text(LINEAR + named)
    return folder


def test_the_agent_of_the_page_unpacks(archived):
    options = Options.defaults(repoagent_directory=str(AGENTS))

    model = offline_model(archived, options)

    assert (model.version.version, model.config.default_model_filename) == (1, "model.py")
    assert sorted(each.name for each in archived.iterdir()) == ["config.pbtxt", "model.zip"]


def test_the_agent_of_the_page_has_a_bound(archived):
    agent = known.find_agent("unpack", str(AGENTS))
    model = AgentModel("packed", ModelConfig(), {"most_bytes": "10"}, archived)

    with pytest.raises(Exception, match="it may hold 10"):
        agent.load(model)

    model.remove()


def test_the_layout_of_the_page_is_read(tmp_path):
    from core.repository import Catalog, FolderRepository

    for line in blocks("text")[0].splitlines()[2:]:
        path = line[4:30].split()[0]
        (tmp_path / "digits" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "digits" / path).write_text("")
    catalog = Catalog([FolderRepository(str(tmp_path))], config_name="small")

    source = catalog.survey("digits")

    assert list(source.versions) == [1, 2]
    assert source.config.backend == "onnxruntime"
