"""Repository agents: check or change a model's files before the model is loaded.

ModelSource ─► [Treated: agents of config.pbtxt, one after the other] ─► ModelSource ─► load
"""

from core.repository.agents.agent import AgentModel, RepositoryAgent
from core.repository.agents.treated import Treated

__all__ = ["AgentModel", "RepositoryAgent", "Treated"]
