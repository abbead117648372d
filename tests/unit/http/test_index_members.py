"""Members that plugins add to the entries of the repository index."""

from frontends.http.index_members import IndexMembers

READY = {"name": "m", "version": "1", "state": "READY"}


def finding(found):
    async def find():
        return found

    return find


async def test_ready_versions_get_the_member_and_others_do_not():
    members = IndexMembers(None)
    members.add("memory", finding({("", "m", "1"): {"host": 5}, ("", "m", "2"): {"host": 6}}))
    out = {"name": "m", "version": "2", "state": "UNAVAILABLE"}
    unknown = {"name": "m", "version": "3", "state": "READY"}
    never_loaded = {"name": "n"}

    found = await members.complete([READY, out, unknown, never_loaded])

    assert found == [{**READY, "memory": {"host": 5}}, out, unknown, never_loaded]


async def test_models_of_two_namespaces_are_told_apart():
    members = IndexMembers(None)
    members.add("memory", finding({("one", "m", "1"): 1, ("two", "m", "1"): 2}))

    found = await members.complete([{**READY, "namespace": each} for each in ("one", "two")])

    assert [each["memory"] for each in found] == [1, 2]


async def test_a_member_that_cannot_be_found_is_left_out_and_logged(caplog):
    async def broken():
        raise OSError("worker 2 is silent")

    members = IndexMembers(None)
    members.add("memory", broken)
    members.add("owner", finding({("", "m", "1"): "search"}))

    assert await members.complete([READY]) == [{**READY, "owner": "search"}]
    assert "the index has no member 'memory' now" in caplog.text
    assert "worker 2 is silent" in caplog.text


async def test_without_plugins_the_entries_stay():
    assert await IndexMembers(None).complete([READY]) == [READY]
