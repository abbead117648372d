"""Access: authentication, authorization and limits of callers. Independent of the protocol.

    credentials ─► [AccessPolicy] ─► Caller (name, roles) ─► ActiveCall (counted in the caller's limits)

A frontend checks every call against the policy first (frontends/shared/interceptors.py). A server without
tokens, keys of issuers and limits has no policy.
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
