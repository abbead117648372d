"""The objects that the frontends of one server share."""

import logging

import pytest

from core.errors import CoreError
from core.options import Options
from core.server import InferenceServer
from frontends.shared.access.tokens import line_of
from frontends.shared.context import FrontendContext, context_of


@pytest.fixture
async def made(tmp_path):
    servers = []

    def make(**options):
        servers.append(
            InferenceServer(Options.defaults(model_repository=[str(tmp_path)], **options))
        )
        return servers[-1]

    yield make
    for server in servers:
        await server.stop(1.0)


async def test_all_frontends_of_a_server_share_one_context(made):
    server, other = made(), made()

    assert context_of(server) is context_of(server)
    assert context_of(server) is not context_of(other)
    assert isinstance(context_of(server), FrontendContext)


async def test_without_its_options_there_is_neither_a_policy_nor_a_log(made):
    context = context_of(made())

    assert context.policy is None
    assert context.access_log is None


async def test_a_server_reads_tokens_again_on_reload(made, tmp_path, caplog):
    tokens = tmp_path / "tokens"
    tokens.write_text(line_of("a", ["infer"], "one"))
    server = made(auth_tokens=str(tokens))
    before = context_of(server).policy.generation

    with caplog.at_level(logging.INFO, "core"):
        server.reload()

    assert context_of(server).policy.generation == before + 1
    assert "--auth-tokens: read again" in caplog.text


async def test_a_server_reopens_its_access_log_on_reload(made, tmp_path):
    server = made(access_log=str(tmp_path / "log"))
    log = context_of(server).access_log
    (tmp_path / "log").rename(tmp_path / "old")

    server.reload()
    await server.stop(1.0)  # ends the thread of the log

    assert (tmp_path / "log").exists()
    assert not log._thread.is_alive()


async def test_a_context_that_cannot_be_made_is_not_kept(made, tmp_path):
    server = made(auth_tokens=str(tmp_path / "missing"))

    for _ in range(2):
        with pytest.raises(CoreError, match="cannot be read"):
            context_of(server)


async def test_a_server_closes_shared_objects_of_its_frontends_once(made):
    closed = []

    class Thing:
        def __init__(self, server):
            self.server = server

        async def close(self):
            closed.append(self.server)

    server = made()
    assert server.shared(Thing).server is server

    await server.stop(1.0)

    assert closed == [server]
