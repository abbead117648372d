"""Which routes a table keeps."""

from urllib.parse import quote

import pytest
from core_router.servers.server import State
from core_router.targets import Purpose
from routing.tables import Table


@pytest.mark.parametrize(("length", "is_kept"), [(1, True), (255, True), (4000, False)])
def test_routes_of_names_that_no_model_has_are_not_kept(length, is_kept):
    table = Table(a=(State.READY, None)).table
    name = "ä" * length
    target = b"/v2/models/%b/infer" % quote(name[: length // 2 or 1]).encode()

    by_target = [table.find(b"POST", target) for _ in range(2)]
    by_name = [table.for_model(Purpose.INFERENCE, name, "1") for _ in range(2)]

    assert (by_target[0] is by_target[1]) is is_kept
    assert (by_name[0] is by_name[1]) is is_kept
    assert by_target[0].candidates == by_target[1].candidates
