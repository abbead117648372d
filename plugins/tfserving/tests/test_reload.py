"""HandleReloadConfigRequest: the models that serve are those of the list."""

import asyncio

import grpc
import pytest
from frontend_tfserving.rpc import messages
from frontend_tfserving.rpc.reload import reload as reload_models

import core
from core.options import Options
from core.server import InferenceServer

SPECIFIC = messages.ServableVersionPolicy(specific={"versions": [1]})
RELOAD = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
CONFIG = """backend: "identity" max_batch_size: 4
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
parameters { key: "version_label.stable" value { string_value: "1" } }"""
NEEDS = """
parameters { key: "signature.other" value { string_value: "ensemble" } }
parameters { key: "explainer" value { string_value: "c" } }"""
ENSEMBLE = """platform: "ensemble"
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling { step { model_name: "a" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } }"""


def write(models, **configs):
    for name, text in configs.items():
        (models / name / "1").mkdir(parents=True)
        (models / name / "config.pbtxt").write_text(text)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    write(models, a=CONFIG, b=CONFIG, c=CONFIG, ensemble=ENSEMBLE, needs=CONFIG + NEEDS)
    explicit = {"model_control_mode": "explicit", "load_model": ["a", "b"]}
    with core.Server(model_repository=str(models), **explicit) as found:
        yield found


@pytest.fixture(scope="module")
def reload(server):
    """reload(name=ModelConfig fields, …): send the list."""
    port = server.serve(grpc_port=0)["grpc"]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        send = channel.unary_unary(
            RELOAD,
            lambda message: message.SerializeToString(),
            messages.ReloadConfigResponse.FromString,
        )

        def reloaded(*models):
            request = messages.ReloadConfigRequest()
            request.config.model_config_list.SetInParent()
            for each in models:
                request.config.model_config_list.config.add(**each)
            return send(request, timeout=20)

        reloaded.raw = send
        yield reloaded


def ready(server):
    return [name for name in "abc" if server.ready(name)]


def listed(*names):
    return [{"name": name, "base_path": f"/models/{name}"} for name in names]


def test_models_of_the_list_are_loaded_and_others_unloaded(server, reload):
    assert reload(*listed("b", "c")).status.error_code == 0
    assert ready(server) == ["b", "c"]

    reload(*listed("a"))
    assert ready(server) == ["a"]

    reload()
    assert ready(server) == []


def test_a_label_of_the_configuration_is_accepted(server, reload):
    reload(*listed("a"))

    reload({"name": "a", "version_labels": {"stable": 1}}, {"name": "b"})

    assert ready(server) == ["a", "b"]


def test_labels_of_a_model_that_is_not_loaded_are_those_of_its_configuration(server, reload):
    reload(*listed("b"))

    reload({"name": "a", "version_labels": {"stable": 1}})

    assert ready(server) == ["a"]
    with pytest.raises(grpc.RpcError, match="the label 'stable' of version 2"):
        reload({"name": "c", "version_labels": {"stable": 2}})


def test_models_that_a_model_of_the_list_needs_stay(server, reload):
    reload(*listed("b", "c", "ensemble"))
    for _ in range(2):
        reload(*listed("needs"))

    assert ready(server) == ["a", "c"]
    assert server.ready("ensemble") and server.ready("needs")

    for _ in range(2):
        reload(*listed("ensemble"))

    assert ready(server) == ["a"]
    assert server.ready("ensemble") and not server.ready("needs")
    reload()


def test_a_model_that_its_next_request_loads_counts_as_loaded(tmp_path):
    write(tmp_path, a=CONFIG, b=CONFIG, c=CONFIG)
    request = messages.ReloadConfigRequest()
    request.config.model_config_list.config.add(name="a", version_labels={"stable": 1})

    async def test():
        server = InferenceServer(
            Options.defaults(
                model_repository=[str(tmp_path)],
                model_control_mode="explicit",
                load_model=["a", "b", "c"],
            )
        )
        await server.start()
        for name in "ab":
            await server.manager.rest(name, "unloaded: memory")
        await reload_models(server, request)
        found = {each.name: (each.state, each.at_rest) for each in server.models.versions()}
        await server.stop(10)
        return found

    found = asyncio.run(test())

    assert found.pop("a") == ("UNAVAILABLE", True)
    for state, at_rest in found.values():
        assert state in ("UNLOADING", "UNAVAILABLE") and not at_rest


@pytest.mark.parametrize(
    ("models", "code", "text"),
    [
        (listed("a", "none"), "INTERNAL", "failed to load 'none'"),
        (listed("a", "a"), "INVALID_ARGUMENT", "a name that no other one has"),
        ([{"base_path": "/x"}], "INVALID_ARGUMENT", "each model of the list needs a name"),
        (
            [{"name": "a", "version_labels": {"stable": 2}}],
            "UNIMPLEMENTED",
            "the label 'stable' of version 2 is not in config.pbtxt",
        ),
        (
            [{"name": "a", "model_version_policy": SPECIFIC.SerializeToString()}],
            "UNIMPLEMENTED",
            "the versions that are served are those of version_policy in config.pbtxt",
        ),
    ],
)
def test_a_list_that_is_refused_unloads_nothing(server, reload, models, code, text):
    reload(*listed("a", "b"))

    with pytest.raises(grpc.RpcError) as raised:
        reload(*models)

    assert raised.value.code().name == code
    assert text in raised.value.details()
    assert ready(server) == ["a", "b"]


def test_a_request_without_a_list_is_refused(reload):
    with pytest.raises(grpc.RpcError, match="no model_config_list"):
        reload.raw(messages.ReloadConfigRequest(), timeout=20)
