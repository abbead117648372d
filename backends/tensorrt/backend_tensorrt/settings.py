"""Settings in config.pbtxt and --backend-config.

ModelConfig, --backend-config ─► [settings] ─► loading, slot, run, instance.  Names and values are those of
Triton's TensorRT backend, except for `runtime`, which Triton lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend_tensorrt.cuda import DEFAULT_PRIORITY, MAX_PRIORITY
from core.config import ModelConfig
from core.errors import invalid, unsupported

STRATEGY = "execution_context_allocation_strategy"
_SEVERAL_GPUS = "enable_multi_device"
PARAMETERS = (STRATEGY, _SEVERAL_GPUS)
BACKEND_SETTINGS = (
    "plugins",
    "version-compatible",
    "execution-policy",
    "coalesce-request-input",
    "runtime",
)
_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")
_POLICIES = ("DEVICE_BLOCKING", "BLOCKING")
_PRIORITY_MAX = 1  # of ModelOptimizationPolicy.ModelPriority


@dataclass(frozen=True)
class BackendSettings:
    """The settings of --backend-config=tensorrt,….

    plugins             paths of plugin libraries, loaded before the first engine
    version_compatible  engines may contain their own runtime, which is code that runs in this process
    shares_thread       the instances of a model on one GPU start their batches from one shared thread
                        (execution-policy DEVICE_BLOCKING, the default), not from their own (BLOCKING)
    coalesces           inputs of requests that are adjacent in memory are copied to the device in one copy
    runtime             "full", "lean" or "dispatch"; "" for the first one that is installed
    """

    plugins: tuple[str, ...] = ()
    version_compatible: bool = False
    shares_thread: bool = True
    coalesces: bool = False
    runtime: str = ""


@dataclass(frozen=True)
class Settings:
    """The settings of a model's configuration.

    strategy          name of an ExecutionContextAllocationStrategy of TensorRT
    priority          priority of each instance's streams, as cuda.Cuda.stream takes it
    graphs            whether CUDA graphs are captured
    busy              threads poll the device in a loop instead of sleeping
    output_stream     a separate stream copies the outputs
    pinned_inputs     inputs are gathered in pinned host memory
    pinned_outputs    outputs are copied to pinned host memory
    ahead             maximum number of batches in flight: one computes, the inputs of the next are copied
                      meanwhile, and with eager_batching there is one more
    """

    strategy: str = "STATIC"
    priority: int = DEFAULT_PRIORITY
    graphs: bool = False
    busy: bool = False
    output_stream: bool = False
    pinned_inputs: bool = True
    pinned_outputs: bool = True
    ahead: int = 2


def backend_settings_of(config: Mapping[str, str]) -> BackendSettings:
    """Return the settings in --backend-config. Raises CoreError(INVALID) for an invalid value."""
    policy = config.get("execution-policy", _POLICIES[0])
    if policy not in _POLICIES:
        raise invalid(
            f"--backend-config=tensorrt,execution-policy={policy}: it must be one of "
            f"{', '.join(_POLICIES)}"
        )
    plugins = [each.strip() for each in config.get("plugins", "").split(";")]
    return BackendSettings(
        plugins=tuple(each for each in plugins if each),
        version_compatible=_boolean(config, "version-compatible"),
        shares_thread=policy == "DEVICE_BLOCKING",
        coalesces=_boolean(config, "coalesce-request-input"),
        runtime=config.get("runtime", ""),
    )


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in a model's configuration.

    Raises CoreError(INVALID) for an invalid value, and CoreError(UNSUPPORTED) for enable_multi_device.
    """
    policy = config.optimization
    strategy = _STRATEGIES[0]
    if STRATEGY in config.parameters:
        strategy = config.parameters[STRATEGY].string_value
    if strategy not in _STRATEGIES:
        raise invalid(
            f"model '{config.name}': expected the parameter '{STRATEGY}' to be one of "
            f"{', '.join(_STRATEGIES)}, got '{strategy}'; change it in config.pbtxt"
        )
    if _SEVERAL_GPUS in config.parameters and config.parameters[
        _SEVERAL_GPUS
    ].string_value.lower() in ("true", "1"):
        raise unsupported(
            f"model '{config.name}': the parameter '{_SEVERAL_GPUS}' spreads one engine over several GPUs, "
            "which this backend does not do; build an engine for one GPU, and take the parameter out of "
            "config.pbtxt"
        )
    return Settings(
        strategy=strategy,
        priority=MAX_PRIORITY if policy.priority == _PRIORITY_MAX else DEFAULT_PRIORITY,
        graphs=policy.cuda.graphs,
        busy=policy.cuda.busy_wait_events,
        output_stream=policy.cuda.output_copy_stream,
        pinned_inputs=policy.input_pinned_memory.enable
        or not policy.HasField("input_pinned_memory"),
        pinned_outputs=policy.output_pinned_memory.enable
        or not policy.HasField("output_pinned_memory"),
        ahead=3 if policy.eager_batching else 2,
    )


def _boolean(config: Mapping[str, str], name: str) -> bool:
    text = config.get(name, "false")
    if text.lower() not in ("true", "false", "1", "0", "on", "off"):
        raise invalid(f"--backend-config=tensorrt,{name}={text}: it must be true or false")
    return text.lower() in ("true", "1", "on")
