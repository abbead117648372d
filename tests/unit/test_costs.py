"""The costs of requests: who hears of them, and until when."""

from core.costs import forget_cost, report_cost, watch_cost
from core.request import InferenceRequest


def test_every_watcher_of_a_request_hears_of_its_costs():
    request, heard, also_heard, cost = InferenceRequest("m", {}), [], [], object()
    watch_cost(request, heard.append)
    watch_cost(request, also_heard.append)

    report_cost(request, cost)

    assert heard == also_heard == [cost]


def test_a_cost_of_another_request_is_not_heard():
    request, heard = InferenceRequest("m", {}), []
    watch_cost(request, heard.append)

    report_cost(InferenceRequest("m", {}), 1)

    assert heard == []


def test_the_steps_of_an_ensemble_report_for_the_request_of_the_client():
    client, heard = InferenceRequest("ensemble", {}), []
    step, inner = InferenceRequest("a", {}), InferenceRequest("b", {})
    step.parent, inner.parent = client, step
    watch_cost(client, heard.append)

    report_cost(step, 1)
    report_cost(inner, 2)

    assert heard == [1, 2]


def test_nothing_is_heard_or_held_after_forget_cost():
    from core import costs

    request, heard = InferenceRequest("m", {}), []
    watch_cost(request, heard.append)

    forget_cost(request)
    report_cost(request, 1)
    forget_cost(request)

    assert heard == []
    assert request not in costs._watchers
