"""Access: who may do what on the port for operators, by the tokens of --admin-tokens.

request ─► [Access.guarded] ─► handler, or status 401 and 403

Tokens and roles are those of the servers (docs/operate/security.md). Without the option every caller may do
everything, but no page of another site: a browser sends its requests as those of the person before it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from core.errors import CoreError, Kind
from core_router.http.responses import error_body

if TYPE_CHECKING:
    from core_router.operate.host_names import HostNames
    from frontends.shared.access import AccessPolicy
    from frontends.shared.watched_files import WatchedFiles

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_STATUS = {Kind.UNAUTHENTICATED: 401, Kind.FORBIDDEN: 403}


class Access:
    """The roles of the callers of one port. Event loop only."""

    def __init__(self, path: str, files: WatchedFiles, names: HostNames | None):
        """Read the file of tokens, and again when it changes.

        path    of the file of tokens; "" for no tokens
        names   that the port answers to without tokens; None for all
        Raises CoreError(INVALID).
        """
        self._path = path
        self._names = None if path else names
        self._policy: AccessPolicy | None = None
        if path:
            self._read()
            files.add("--admin-tokens", [path], self._read)

    def _read(self) -> None:
        # Imported here: without tokens, nothing of the router needs numpy, which comes with it.
        from frontends.shared.access import AccessPolicy
        from frontends.shared.options import SharedOptions

        self._policy = AccessPolicy(SharedOptions(auth_tokens=self._path))

    def caller(self, request: web.Request) -> str:
        """Return the name of the caller; "" without a token. Raises CoreError(UNAUTHENTICATED)."""
        if self._policy is None:
            return ""
        found = self._policy.identify(_credentials(request))
        return found.name if found.known else ""

    def check(self, request: web.Request, category: str, changes: bool) -> None:
        """Raise CoreError(UNAUTHENTICATED, FORBIDDEN) unless the caller may do what a category needs.

        changes   whether it changes the router or its servers
        """
        if self._policy is None:
            return
        from frontends.shared.access import requirement

        self._policy.authorize(_credentials(request), requirement(category, changes=changes))

    def permits(self, request: web.Request, category: str, changes: bool) -> bool:
        """Return whether `check` raises nothing."""
        try:
            self.check(request, category, changes)
        except CoreError:
            return False
        return True

    def guarded(self, handler: Handler, category: str = "", changes: bool = False) -> Handler:
        """Return a handler that refuses pages of other sites, and what `check` refuses.

        category   "" if the handler checks it
        """

        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                # Not request.host: without the field, it may look the machine's own name up.
                host = request.headers.get("Host")  # every browser sends it
                if self._names is not None and host is not None and not self._names.permit(host):
                    return refused(403, self._names.refusal(host))
                if request.method != "GET" and _is_of_another_site(request):
                    return refused(403, "a page of another site may not use this port")
                if category:
                    self.check(request, category, changes)
                return await handler(request)
            except CoreError as error:
                return refused(_STATUS.get(error.kind, 503), error.message)

        return answer


def refused(status: int, text: str) -> web.Response:
    """Return the response with an error."""
    headers = {"WWW-Authenticate": 'Bearer realm="core"'} if status == 401 else None
    body = error_body(text)
    return web.Response(status=status, body=body, headers=headers, content_type="application/json")


def _is_of_another_site(request: web.Request) -> bool:
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("none", "same-origin")
    # Browsers send Sec-Fetch-Site over HTTPS and to this machine only, and Origin everywhere.
    origin = request.headers.get("Origin")
    return origin is not None and _authority(origin) != request.host.lower()


def _authority(url: str) -> str:
    """Return host and port of a URL in lower case; "" if it has none."""
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _credentials(request: web.Request):  # type: ignore[no-untyped-def]
    from frontends.shared.access import Credentials

    headers = request.headers
    return Credentials.of(
        headers.getall("Authorization", []), headers.getall("X-API-Key", []), request.remote or ""
    )
