"""The properties of a call that a method sees."""

from frontends.grpc.call import GrpcCall


def test_the_last_of_several_values_counts():
    call = GrpcCall([("a", "1"), ("b", "2"), ("a", "3")])

    assert (call.value("a"), call.value("b"), call.value("c")) == ("3", "2", None)


def test_listeners_get_the_end_once():
    heard = []
    call = GrpcCall()
    call.on_cancel(lambda: heard.append("first"))

    call.cancel()
    call.cancel()
    call.on_cancel(lambda: heard.append("late"))

    assert heard == ["first", "late"]
    assert call.cancelled
