"""Access: who calls, and what a caller may do. Independent of the protocol.

    credentials ─► [AccessPolicy] ─► Caller (name, roles) ─► ActiveCall (counted in the caller's limits)

A frontend asks the policy first, for every call (frontends/shared/interceptors.py). Without tokens, keys of
issuers and limits there is no policy.
"""

from frontends.shared.access.active_call import ActiveCall
from frontends.shared.access.credentials import Credentials
from frontends.shared.access.policy import AccessPolicy, Caller
from frontends.shared.access.roles import CATEGORIES, ROLES, Requirement, requirement

__all__ = [
    "CATEGORIES",
    "ROLES",
    "AccessPolicy",
    "ActiveCall",
    "Caller",
    "Credentials",
    "Requirement",
    "requirement",
]
