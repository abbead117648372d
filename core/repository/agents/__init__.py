"""Repository agents: what looks at a model's files, or changes them, before the model is loaded.

    ModelSource ─► [Treated: agents of config.pbtxt, one after the other] ─► ModelSource ─► load

agent.py       what an agent is, for who writes one, and what it sees of a model
known.py       the agent that a name means
treated.py     the agents of one model, and when they are called
checksum.py    built in: files must have these digests
"""

from core.repository.agents.agent import AgentModel, RepositoryAgent
from core.repository.agents.treated import Treated

__all__ = ["AgentModel", "RepositoryAgent", "Treated"]
