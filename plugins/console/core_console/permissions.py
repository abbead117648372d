"""Permissions: what the caller of the page may do, so that the page shows nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from core.errors import CoreError
from frontends.http.message import HttpRequest
from frontends.http.route import Route
from frontends.http.route_templates import templates
from frontends.shared.access import Caller, Credentials, requirement
from frontends.shared.context import context_of

if TYPE_CHECKING:
    from core.server import InferenceServer

_READ = {
    "statistics": "statistics",
    "models": "model-repository",
    "traces": "trace",
    "log": "logging",
    "configuration": "model-config",
}
_CHANGE = {"load": "model-repository", "trace": "trace", "logging": "logging", "infer": "inference"}


def permissions(server: InferenceServer, call: HttpRequest) -> dict[str, Any]:
    """Return the name of the caller, and name → whether the caller may do it.

    Raises Unauthenticated if the token of the call is not valid.
    """
    names = {f"read_{name}": (category, False) for name, category in _READ.items()}
    names |= {f"change_{name}": (category, True) for name, category in _CHANGE.items()}
    policy = context_of(server).policy
    if policy is None:
        return {"caller": "", "may": dict.fromkeys(names, True)}
    caller = policy.identify(_credentials(call))
    may = {}
    for name, (category, changes) in names.items():
        try:
            policy.check(caller, requirement(category, changes=changes))
            may[name] = True
        except CoreError:
            may[name] = False
    return {
        "caller": caller.name if caller.known else "",
        "may": may,
    }


def permitted_routes(
    server: InferenceServer, call: HttpRequest, routes: Iterable[Route]
) -> list[str]:
    """Return method and path of those routes that the caller may ask, such as "GET /v2/jobs/{job}".

    Raises Unauthenticated if the token of the call is not valid.
    """
    policy = context_of(server).policy
    caller = None if policy is None else policy.identify(_credentials(call))
    found = []
    for route in routes:
        for method in sorted(route.methods):
            changes = not (route.looks or method == "GET")
            if caller is not None:
                try:
                    caller.policy.check(caller, requirement(route.category, changes=changes))
                except CoreError:
                    continue
            found += [f"{method} {path}" for path in templates(route.path.pattern)]
    return found


def checker(
    server: InferenceServer, call: HttpRequest, category: str
) -> Callable[[], Caller | None]:
    """Return a function that raises CoreError as soon as the caller may not read a category any more."""
    policy = context_of(server).policy
    if policy is None:
        return lambda: None
    credentials, wanted = _credentials(call), requirement(category, changes=False)
    return lambda: policy.authorize(credentials, wanted)


def _credentials(call: HttpRequest) -> Credentials:
    items = call.headers.items()
    values = {
        wanted: [value for name, value in items if name.lower() == wanted]
        for wanted in ("authorization", "x-api-key")
    }
    return Credentials.of(values["authorization"], values["x-api-key"])
