"""The engine arguments of vLLM 0.32, for checks where no vLLM is installed.

A test compares them with the installed vLLM, if that is of this version.
"""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "0.32"

# Types that the JSON value may have → names of arguments. "any": only vLLM knows them.
_NAMES = {
    "any": """
        all2all_backend attention_backend attention_config aux_output_config compilation_config convert
        data_parallel_backend dcp_comm_backend distributed_executor_backend dtype ec_manager_config
        ec_transfer_config engram_config eplb_config expert_placement_strategy fault_tolerance_config
        gdn_prefill_backend hf_overrides ir_op_priority jit_monitor_mode kda_decode_backend
        kda_prefill_backend kernel_config kv_cache_dtype kv_events_config kv_offloading_backend
        kv_transfer_config linear_backend load_format log_level logging_config logprobs_mode lora_dtype
        mamba_backend mamba_cache_dtype mamba_cache_mode mamba_config mamba_ssm_cache_dtype
        mamba_ssu_algorithm max_lora_rank mm_encoder_attn_backend mm_encoder_tp_mode mm_hasher_algorithm
        mm_processor_cache_type mm_processor_device mm_tensor_ipc moe_backend optimization_level
        per_request_spec_decode_metrics performance_mode pooler_config prefix_caching_hash_algo
        profiler_config quantization quantization_config reasoning_config runner safetensors_load_strategy
        scheduler_cls scheduling_policy sparse_indexer_topk_backend structured_outputs_config tokenizer_mode
        weight_transfer_config
    """,
    "bool": """
        aggregate_engine_logging allow_deprecated_quantization cudagraph_metrics data_parallel_external_lb
        data_parallel_hybrid_lb data_parallel_multi_port_external_lb disable_chunked_mm_input
        disable_custom_all_reduce disable_log_stats disable_sliding_window enable_cumem_allocator enable_dbo
        enable_elastic_ep enable_ep_weight_filter enable_eplb enable_expert_parallel enable_fault_tolerance
        enable_flashinfer_autotune enable_hc_sp enable_layerwise_nvtx_tracing enable_log_requests
        enable_logging_iteration_details enable_lora enable_mamba_cache_stochastic_rounding
        enable_mamba_shared_prefix_checkpoint enable_mfu_metrics enable_mixed_moe_lora_format
        enable_mm_embeds enable_mm_processor_stats enable_moe_shared_loras enable_nccl_comm_suspend
        enable_prompt_embeds enable_return_routed_experts enable_shm_tensor_arena enable_sleep_mode
        enable_tower_connector_lora enable_trace_replay enforce_eager fail_on_environ_validation
        fully_sharded_loras interleave_mm_strings jit_monitor_verbose kv_cache_metrics
        kv_sharing_fast_prefill language_model_only long_prefill_token_threshold_adaptive mm_encoder_only
        numa_bind ray_workers_use_nsight return_sampling_mask scheduler_reserve_full_isl skip_mm_profiling
        skip_tokenizer_init sleep_mode_offload_cudagraph specialize_active_lora swa_bounded_replay
        tokens_only trust_remote_code use_fp64_gumbel use_replayssm use_tqdm_on_load
    """,
    "int": """
        data_parallel_size dbo_decode_token_threshold dbo_prefill_token_threshold
        dcp_kv_cache_interleave_size decode_context_parallel_size dp_sync_interval elastic_ep_max_dp_size
        long_prefill_token_threshold mamba_cache_philox_rounds master_port max_logprobs max_loras
        max_model_len mm_shm_cache_max_object_size_mb nnodes node_rank offload_group_size
        offload_num_in_group offload_prefetch_step pipeline_parallel_size prefill_context_parallel_size
        prefill_schedule_interval renderer_num_workers replayssm_buffer_len safetensors_prefetch_block_size
        safetensors_prefetch_num_threads seed shutdown_timeout stream_interval tensor_parallel_size
        ubatch_size
    """,
    "int null": """
        block_size cp_kv_cache_interleave_size cpu_distributed_timeout_seconds data_parallel_rank
        data_parallel_rpc_port data_parallel_size_local data_parallel_start_rank distributed_timeout_seconds
        kv_cache_memory_bytes mamba_block_size max_cpu_loras max_cudagraph_capture_size max_lora_cls_labels
        max_num_active_seqs max_num_batched_tokens max_num_queued_reqs max_num_queued_tokens
        max_num_scheduled_tokens max_num_seqs max_parallel_loading_workers num_gpu_blocks_override
        prefix_cache_retention_interval prefix_match_unit spec_tokens
    """,
    "str null": """
        code_revision data_parallel_address download_dir hf_config_path io_processor_plugin log_config_file
        mm_encoder_attn_dtype mm_encoder_fp8_scale_path mm_encoder_fp8_scale_save_path otlp_traces_endpoint
        reasoning_parser_plugin revision show_hidden_metrics_for_version spec_method spec_model tokenizer
        tokenizer_revision
    """,
    "str": """
        allowed_local_media_path config_format generation_config master_addr model model_impl model_weights
        offload_backend reasoning_parser video_pruning_method worker_cls worker_extension_cls
    """,
    "bool null": """
        async_scheduling dcp_q_replicate disable_cascade_attn disable_hybrid_kv_cache_manager
        disable_nccl_for_dp_synchronization enable_batch_sharded_sampling enable_chunked_prefill
        enable_prefix_caching mm_device_do_normalize
    """,
    "list null": """
        allowed_media_domains collect_detailed_traces cudagraph_capture_sizes device_ids logits_processors
        lora_target_modules numa_bind_cpus numa_bind_nodes
    """,
    "float int": """
        cpu_offload_gb gpu_memory_utilization kv_cache_metrics_sample mm_encoder_fp8_scale_save_margin
        mm_ipc_gpu_memory_gb mm_processor_cache_gb watermark
    """,
    "dict": """
        additional_config limit_mm_per_prompt media_io_kwargs model_class_overrides
        model_loader_extra_config override_generation_config
    """,
    "dict null": """
        custom_histogram_buckets default_mm_loras diffusion_config mm_processor_kwargs speculative_config
        watermark_config
    """,
    "list": """
        cpu_offload_params kv_cache_dtype_skip_layers offload_params sleep_preserve_parameter_names
    """,
    "float int null": """
        kv_offloading_size video_pruning_rate
    """,
    "bool str null": """
        hf_token
    """,
    "str dict": """
        pt_load_map_location
    """,
    "str list": """
        ignore_patterns
    """,
    "str list null": """
        served_model_name
    """,
}
_TYPES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "list": list,
    "dict": dict,
    "null": type(None),
}

ARGUMENTS: Mapping[str, tuple[type, ...]] = {
    name: tuple(_TYPES[each] for each in words.split() if each != "any")
    for words, names in _NAMES.items()
    for name in names.split()
}
