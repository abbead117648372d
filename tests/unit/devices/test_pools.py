"""The place of the pools of a process."""

from core.devices import pools


def test_without_a_plugin_there_are_none():
    own = pools.current()

    own.open(0)

    assert own.on_host(8) is own.on_gpu(0, 8) is own.growable(0) is None
    assert own.pinned_bytes() == (0, 0)


def test_the_last_server_of_a_process_has_its_pools_used():
    first, second = pools.Pools(), pools.Pools()
    before = pools.current()

    pools.use(first)
    pools.use(second)
    assert pools.current() is second
    pools.leave(second)
    assert pools.current() is first
    pools.leave(first)

    assert pools.current() is before
