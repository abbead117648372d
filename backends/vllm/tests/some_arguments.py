"""Some engine arguments of vLLM 0.32, in the form of its module arg_utils, for tests without vLLM."""

SOURCE = """
class EngineArgs:
    model: str
    tokenizer: str | None
    hf_config_path: str | None
    model_weights: str
    runner: RunnerOption
    convert: ConvertOption
    skip_tokenizer_init: bool
    enable_prompt_embeds: bool
    trust_remote_code: bool
    dtype: ModelDType
    seed: int
    max_model_len: int
    device_ids: list[int | str] | None
    tensor_parallel_size: int
    pipeline_parallel_size: int
    block_size: int | None
    enable_prefix_caching: bool | None
    gpu_memory_utilization: float
    kv_cache_memory_bytes: int | None
    max_num_seqs: int | None
    disable_log_stats: bool
    revision: str | None
    quantization: QuantizationMethods | str | None
    enforce_eager: bool
    limit_mm_per_prompt: dict[str, int | dict[str, int]]
    enable_lora: bool
    max_loras: int
    max_lora_rank: MaxLoRARanks
    speculative_config: dict[str, Any] | None
    generation_config: str
    _api_process_count: int

    def __post_init__(self):
        later: int = 1


class AsyncEngineArgs(EngineArgs):
    enable_log_requests: bool
"""
