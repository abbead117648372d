"""Repository agents: check or change a model's files before the model is loaded.

    ModelSource ─► [Treated: agents of config.pbtxt, one after the other] ─► ModelSource ─► load

agent.py       the interface of an agent, and its view of a model
known.py       find an agent by name
treated.py     the agents of one model, and the order of their calls
checksum.py    built in: compares file digests
"""

from core.repository.agents.agent import AgentModel, RepositoryAgent
from core.repository.agents.treated import Treated

__all__ = ["AgentModel", "RepositoryAgent", "Treated"]
