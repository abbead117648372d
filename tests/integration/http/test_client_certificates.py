"""Callers over HTTP that only their certificates name: limits, fair shares."""

import pytest

from frontends.shared.access.caller_names import CallerNames


@pytest.fixture
def over_tls():
    return True


@pytest.fixture
def mutual(certificates):
    return {"http_use_ssl_mutual": True, "http_root_cert": str(certificates.root_crt)}


def show(site, certificates):
    """Let the connections of a site show the client's certificate, whose name is `localhost`."""
    site.tls.load_cert_chain(certificates.client_crt, certificates.client_key)


async def test_the_limits_are_those_of_the_certificate(open_with, certificates, mutual, document):
    async with open_with(**mutual, limit_rate=0.001, limit_burst=2) as site:
        show(site, certificates)
        found = [await site.infer("echo", document(1)) for _ in range(3)]

    assert [each.status for each in found] == [200, 200, 429]
    assert found[-1].json["error"].startswith("caller 'localhost' has sent more")


@pytest.fixture
def identified(monkeypatch):
    """Let servers number their callers, as a plugin does before frontends open."""
    begin = CallerNames.__init__

    def numbering(self, server=None):
        begin(self, server)
        self.identify("x-user", addresses=True)

    monkeypatch.setattr(CallerNames, "__init__", numbering)


async def test_fair_shares_know_the_certificate_without_limits(
    open_with, certificates, mutual, document, identified
):
    async with open_with(**mutual) as site:
        show(site, certificates)
        await site.infer("echo", document(1), {"X-User": "another"})
        (request,) = site.backend.requests
        name = CallerNames.of(site.server).name(request.caller)

    assert name == "localhost"
