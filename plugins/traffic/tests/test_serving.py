"""Requests to models with traffic, in one process: who answers, before and after changes."""

import asyncio

import pytest

from core.errors import CoreError, Kind
from core.request import SEQUENCE_END, SEQUENCE_START

from .conftest import CONFIG, X, area, ask, parameter, shares, text_of_error, version_of

STREAMS = CONFIG.replace('"versions"', '"streams"') + (
    "model_transaction_policy { decoupled: true }\n"
)
SEQUENCES = CONFIG + "max_batch_size: 1\nsequence_batching { direct {} }\n"


async def test_without_traffic_the_newest_version_answers(models, serve):
    models.write()
    server = await serve()

    assert await shares(server, 20) == {2: 20}
    assert await area(server).get("m") == {
        "model": "m", "source": "none", "traffic": None, "versions": [], "shadows": [], "rollbacks": []
    }  # fmt: skip


async def test_weights_of_the_configuration_hold_from_the_first_request(models, serve):
    models.write(more=parameter('{"weights": {"1": 50, "2": 50}}'))
    server = await serve()

    found = await shares(server, 200)

    assert set(found) == {1, 2} and 60 <= found[1] <= 140


async def test_a_control_call_changes_the_shares_while_requests_come(models, serve):
    models.write()
    server = await serve()

    await area(server).set("m", {"weights": {"1": 1}})
    assert await shares(server, 20) == {1: 20}
    await area(server).set("m", {"weights": {"1": 0, "2": 1}})
    assert await shares(server, 20) == {2: 20}
    await area(server).set("m", {"weights": {"1": 1, "2": 1}})
    assert set(await shares(server, 100)) == {1, 2}


async def test_a_request_that_names_a_version_is_untouched(models, serve):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    server = await serve()

    assert await shares(server, 10, model_version=2) == {2: 10}
    (entry,) = (await area(server).get("m"))["versions"]
    assert (entry["version"], entry["success"]) == (1, 0)


async def test_other_models_have_no_front(models, serve):
    models.write("m", more=parameter('{"weights": {"1": 1}}'))
    models.write("other")
    server = await serve()

    endpoints = server.models.endpoints
    assert endpoints.find("other", -1) is endpoints.find("other", 2)
    assert endpoints.find("m", -1) is not endpoints.find("m", 1)


async def test_reset_goes_back_to_the_configuration(models, serve):
    models.write("m", more=parameter('{"weights": {"1": 1}}'))
    models.write("other")
    server = await serve()
    for name in ("m", "other"):
        await area(server).set(name, {"weights": {"1": 1, "2": 1}})
        await area(server).reset(name)

    assert await shares(server, 10) == {1: 10}
    assert await shares(server, 10, "other") == {2: 10}
    assert (await area(server).get("m"))["source"] == "configuration"
    assert area(server).models() == ["m"]


async def test_a_reload_keeps_what_a_control_call_has_set(models, serve):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    await area(server).set("m", {"weights": {"2": 1}})

    models.write(versions=(3,), more=parameter('{"weights": {"1": 1}}'))
    await server.control.repository.load("m", {})
    assert await shares(server, 10) == {2: 10}

    models.write(versions=(), more=parameter('{"weights": {"3": 1}}'))
    await server.control.repository.load("m", {})
    assert await shares(server, 10) == {3: 10}  # the configuration has changed


async def test_a_version_that_goes_leaves_its_share_to_the_others(models, serve):
    models.write(more=parameter('{"weights": {"1": 1, "2": 1}}'))
    server = await serve()

    config = CONFIG.replace("all {}", "specific { versions: [ 1 ] }")
    models.write(versions=(), config=config, more=parameter('{"weights": {"1": 1, "2": 1}}'))
    await server.control.repository.load("m", {})

    assert await shares(server, 20) == {1: 20}
    entry = (await area(server).get("m"))["versions"][1]
    assert (entry["ready"], entry["reason"], entry["share"]) == (False, "it is not ready", 0)


async def test_without_a_version_that_has_a_weight_requests_are_refused(models, serve):
    models.write(versions=(1,), more=parameter('{"weights": {"3": 1}}'))
    server = await serve()

    with pytest.raises(CoreError, match="no version of model 'm' that has a weight") as caught:
        await ask(server)

    assert caught.value.kind is Kind.UNAVAILABLE
    assert await version_of(server, model_version=1) == 1


async def test_requests_in_flight_end_where_they_are(models, serve):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    held = ask(server, value=-2.0)

    await area(server).set("m", {"weights": {"2": 1}})
    assert await version_of(server) == 2
    assert (await area(server).get("m"))["versions"][0]["in_flight"] == 1
    server.released.set()

    assert (await held).model_version == 1


async def test_sequences_stay_where_they_began(models, serve):
    models.write(config=SEQUENCES, more=parameter('{"weights": {"1": 1}}'))
    server = await serve()

    async def of(number, flags=0):
        reply = ask(server, shape=(1, 1), correlation_id=number, flags=flags)
        return (await reply).model_version

    assert await of(7, SEQUENCE_START) == 1
    await area(server).set("m", {"weights": {"2": 1}})
    assert await of(8, SEQUENCE_START) == 2
    assert [await of(7), await of(8), await of(7, SEQUENCE_END)] == [1, 2, 1]
    assert await of(8, SEQUENCE_END) == 2
    assert await of(7, SEQUENCE_START) == 2
    assert await of(7, SEQUENCE_END) == 2


async def test_streams_come_whole_from_one_version(models, serve):
    models.write(config=STREAMS, more=parameter('{"weights": {"1": 1, "2": 1}}'))
    server = await serve()

    found = []
    for _ in range(40):
        answers = [each.model_version async for each in ask(server, value=5.0)]
        assert len(answers) == 5 and len(set(answers)) == 1
        found.append(answers[0])

    assert set(found) == {1, 2}


async def test_an_ensemble_and_its_steps_share_too(models, serve):
    models.write(more=parameter('{"weights": {"1": 1, "2": 1}}'))
    text = CONFIG.replace('backend: "versions"', 'platform: "ensemble"') + X
    step = (
        'ensemble_scheduling { step [ { model_name: "m" model_version: -1 '
        'input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }'
    )
    models.write("e", versions=(1,), config=text, more=step)
    server = await serve()

    found = [(await ask(server, "e")).outputs[0].array.tolist()[0] for _ in range(100)]

    assert set(found) == {1.0, 2.0}


async def test_a_model_in_a_namespace_shares_by_either_name(models, serve):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    server = await serve(model_namespacing=True)
    key = next(server.manager.versions()).key

    assert key != "m"
    assert await shares(server, 5, "m") == await shares(server, 5, key) == {1: 5}
    await area(server).set("m", {"weights": {"2": 1}})
    assert await shares(server, 5, "m") == {2: 5}
    assert (await area(server).get(key))["traffic"] == {"weights": {"2": 1}}


async def test_results_are_counted_by_version(models, serve):
    models.write(more=parameter('{"weights": {"1": 1, "2": 0}}'))
    server = await serve()
    await shares(server, 3)
    with pytest.raises(CoreError, match="it cannot"):
        await ask(server, value=-1.0)
    with pytest.raises(CoreError, match="unexpected shape"):
        await ask(server, shape=(2,))
    waiting = ask(server, value=-2.0)
    cancelled = ask(server, value=1.0)
    cancelled.cancel()
    server.released.set()
    await waiting
    await text_of_error(cancelled)

    one, two = (await area(server).get("m"))["versions"]

    counted = {name: one[name] for name in ("success", "error", "refused", "cancelled")}
    assert counted == {"success": 4, "error": 1, "refused": 0, "cancelled": 1}
    assert (one["weight"], one["share"], one["ready"]) == (1, 1.0, True)
    assert (one["window"]["requests"], one["window"]["errors"]) == (5, 1)
    assert one["window"]["error_rate"] == 0.2
    assert 0 < one["window"]["p50_ms"] <= one["window"]["p99_ms"]
    assert two["window"] == {
        "seconds": 10.0, "requests": 0, "errors": 0, "error_rate": None, "p50_ms": None, "p99_ms": None
    }  # fmt: skip


async def test_metrics_count_by_version_and_result(models, serve):
    models.write(more=parameter('{"weights": {"1": 3, "2": 1}}'))
    server = await serve()
    found = await shares(server, 40)

    families = {each.name: each for each in await server.control.health.metrics()}
    samples = families["core_traffic_requests"].samples
    counts = {s.labels["version"]: s.value for s in samples if s.labels["result"] == "success"}
    parts = {s.labels["version"]: s.value for s in families["core_traffic_share"].samples}

    assert counts == {str(number): count for number, count in found.items()}
    assert parts == {"1": 0.75, "2": 0.25}


async def test_a_trace_names_the_version_that_has_answered(models, serve, tmp_path):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    file = tmp_path / "trace.json"
    server = await serve(
        trace_config={
            "": [("level", "TIMESTAMPS"), ("rate", "1"), ("mode", "triton")],
            "triton": [("file", str(file))],
        }
    )

    await ask(server)
    await server.tracing.close()

    assert '"model_version":1' in file.read_text().replace(" ", "")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"weights": {"1": 1, "7": 1}}, "version 7 is not ready; ready: 1, 2"),
        ({"weights": {"1": 1}, "rules": [{"parameter": "p", "version": 9}]}, "version 9 is not"),
        ({"weights": {"1": 0}}, "weights are all 0"),
        ({"weight": {"1": 1}}, "has no field \"weight\"; did you mean 'weights'?"),
        (
            {"weights": {"1": 1}, "sticky": {"header": "x-user"}},
            "the header 'x-user' is not forwarded to models; start the server with "
            r"--http-header-forward-pattern='(?i)x\-user'",
        ),
    ],
)
async def test_wrong_settings_change_nothing(models, serve, settings, text):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    server = await serve()

    assert text in await text_of_error(area(server).set("m", settings))
    assert await shares(server, 5) == {1: 5}


async def test_unknown_models_are_not_found(models, serve):
    models.write()
    server = await serve()

    text = "NOT_FOUND: Request for unknown model: 'mm' is not found; did you mean 'm'?"
    assert await text_of_error(area(server).set("mm", {"weights": {"1": 1}})) == text
    assert await text_of_error(area(server).get("mm")) == text
    assert await text_of_error(area(server).reset("mm")) == text


async def test_a_forwarded_header_may_decide(models, serve):
    models.write(
        more=parameter('{"weights": {"1": 1}, "rules": [{"header": "X-T", "version": 2}]}')
    )
    server = await serve(http_header_forward_pattern="(?i)x-t")

    assert await version_of(server, parameters={"x-t": "any"}) == 2
    assert await version_of(server) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("95,5", "parameter 'traffic' is not JSON"),
        ('{"weights": {"1": 0}}', "weights are all 0"),
        ('{"weights": {"1": 1}, "sticky": {"header": "u"}}', "the header 'u' is not forwarded"),
    ],
)
async def test_wrong_settings_in_a_configuration_fail_the_load(models, serve, text, reason):
    models.write(more=parameter(text))
    server = await serve()

    index = await server.control.repository.index()

    assert {each["state"] for each in index} == {"UNAVAILABLE"}
    assert all(reason in each["reason"] for each in index)


async def test_a_version_that_takes_other_requests_cannot_take_part(models, serve):
    models.write(more=parameter('{"weights": {"1": 1, "2": 1, "3": 1}}'))
    models.write(
        versions=(3,), more=parameter('{"weights": {"1": 1, "2": 1, "3": 1}}'), inputs="x z"
    )
    server = await serve()

    assert set(await shares(server, 100)) == {1, 2}
    entry = (await area(server).get("m"))["versions"][2]
    reason = "it takes other requests than version 1: it needs the input 'z'"
    assert (entry["ready"], entry["reason"]) == (False, reason)
    assert await text_of_error(area(server).set("m", {"weights": {"1": 1, "3": 1}})) == (
        f"INVALID: traffic of model 'm': version 3 cannot take part: {reason}"
    )


async def test_changes_under_load_lose_nothing(models, serve):
    models.write(more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    found = []

    async def client():
        for _ in range(200):
            found.append(await version_of(server))
            await asyncio.sleep(0)

    async def operator():
        for number in range(100):
            await area(server).set("m", {"weights": {"1": 100 - number, "2": number + 1}})
            await asyncio.sleep(0)

    await asyncio.gather(operator(), *(client() for _ in range(5)))

    report = await area(server).get("m")
    assert [each["success"] for each in report["versions"]] == [found.count(1), found.count(2)]
    assert len(found) == 1000 and set(found) == {1, 2}
