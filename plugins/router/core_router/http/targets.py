"""Target: what the path of a request asks for, and which servers can answer.

path ─► [target_of] ─► Purpose, model, version
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from core_router.targets import Purpose, Target

_MODEL = r"/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?"
_INFERENCE = re.compile(_MODEL + r"/(?:infer|generate|generate_stream)")
_STATISTICS = re.compile(rf"(?:/v2/models|{_MODEL})/stats")
_OF_MODEL = re.compile(_MODEL + r"(?:/.*)?")
_PREDICTION = re.compile(
    r"/v1/models/(?P<model>[^/:]+)(?:/(?:versions|labels)/[^/:]+)?:(?:predict|classify|regress|explain)"
)
# Names may have slashes here, as those of the hubs do.
_V1_MODEL = re.compile(
    r"/v1/models/(?P<model>[^:]+?)(?:/(?:versions|labels)/[^/:]+)?(?:/metadata)?"
)
# Settings of the server itself: all servers get the same. GET asks one of them.
_SETTINGS = re.compile(
    r"/v1/models/.+/(?:load|unload)"
    r"|/v2/(?:repository/models/[^/]+/(?:load|unload)|logging|(?:models/[^/]+/)?trace/setting"
    r"|(?:system|cuda)sharedmemory(?:/region/[^/]+)?/(?:register|unregister))"
)
_BY_BODY = re.compile(
    r"/v1/(?:chat/completions|completions|embeddings|responses|messages(?:/count_tokens)?|rerank"
    r"|audio/(?:transcriptions|translations))"
    r"|/(?:de)?tokenize"
)

_PLAIN = {
    "/v2/health/live": Purpose.LIVE,
    "/v2/health/ready": Purpose.READY,
    "/v2/repository/index": Purpose.INDEX,
}


def target_of(method: bytes, path: bytes) -> Target:
    """Return what a request asks for.

    path   as received, without the query; may have escapes such as %20
    """
    text = _decoded(path)
    if (purpose := _PLAIN.get(text)) is not None:
        return Target(purpose)
    if method == b"GET" and text == "/v1/models":
        return Target(Purpose.LIST)
    if method != b"GET" and _SETTINGS.fullmatch(text):
        return Target(Purpose.EVERY)
    if method == b"POST":
        if _BY_BODY.fullmatch(text):
            return Target(Purpose.NAMED_IN_BODY)
        if match := _INFERENCE.fullmatch(text) or _PREDICTION.fullmatch(text):
            return _of(match, Purpose.INFERENCE)
    if match := _STATISTICS.fullmatch(text):
        return _of(match, Purpose.STATISTICS)
    if match := _OF_MODEL.fullmatch(text) or _V1_MODEL.fullmatch(text):
        return _of(match, Purpose.MODEL)
    return Target(Purpose.ANY)


def _of(match: re.Match[str], purpose: Purpose) -> Target:
    found = match.groupdict()
    return Target(purpose, found.get("model") or "", found.get("version") or "")


def _decoded(path: bytes) -> str:
    if b"%" in path:
        path = unquote_to_bytes(path)
    return path.decode("utf-8", "replace")
