"""Who calls, and what a caller may do. It knows no protocol.

    credentials ─► [Gate] ─► Pass (who, which roles) ─► Visit (within the limits of the caller)

A frontend asks the gate before anything else, for every call. Without tokens, keys of issuers and limits
there is no gate.
"""

from core.access.credentials import Credentials
from core.access.demands import CATEGORIES, ROLES, Demand, demand
from core.access.gate import Gate, Pass, Visit

__all__ = ["CATEGORIES", "ROLES", "Credentials", "Demand", "Gate", "Pass", "Visit", "demand"]
