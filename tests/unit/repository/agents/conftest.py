"""A model in a folder, and what an agent is called with."""

import pytest

from core.config import ModelConfig
from core.repository.agents import AgentModel


@pytest.fixture
def model(folder):
    return folder.model("m", text="weights", files={"labels.txt": "cat\ndog\n"})


@pytest.fixture
def seen(model):
    """Return an agent's view of the model, with these parameters; released at the end."""
    made = []

    def seen(**parameters):
        made.append(AgentModel("m", ModelConfig(name="m"), parameters, model))
        return made[-1]

    yield seen
    for each in made:
        each.remove()
