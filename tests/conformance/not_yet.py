"""What this server cannot do yet, by reason. The list only shrinks: a test here that passes fails the run.

Keys are reasons; values are test modules, or tests of a module ("test_x.py::test_name", without the
parameters in brackets).
"""

NOT_YET: dict[str, list[str]] = {
    "Python models cannot call other models yet (BLS).": [
        "test_bls.py::test_asynchronous_calls_run_together",
        "test_bls.py::test_asynchronous_decoupled_call",
        "test_bls.py::test_call_for_a_wrong_output_is_an_error",
        "test_bls.py::test_call_gives_only_the_requested_outputs",
        "test_bls.py::test_call_of_an_unknown_model_raises",
        "test_bls.py::test_call_of_one_version",
        "test_bls.py::test_call_with_a_wrong_input_is_an_error",
        "test_bls.py::test_call_without_version_takes_the_latest",
        "test_bls.py::test_calling_model_works_over_grpc",
        "test_bls.py::test_calls_count_in_the_statistics_of_the_called_model",
        "test_bls.py::test_calls_may_follow_each_other",
        "test_bls.py::test_concurrent_calls_get_their_own_answers",
        "test_bls.py::test_decoupled_call_gives_every_response",
        "test_bls.py::test_error_in_a_decoupled_call_does_not_hide_the_other_responses",
        "test_bls.py::test_error_of_the_called_model_is_given_to_the_caller",
        "test_bls.py::test_fields_of_a_call_reach_the_called_model",
        "test_bls.py::test_model_readiness_can_be_asked",
        "test_bls.py::test_ordinary_model_may_be_called_as_decoupled",
        "test_bls.py::test_strings_pass_through_a_call",
        "test_bls.py::test_synchronous_call_gives_the_other_models_answer",
    ],
    "The generate extension is not there yet.": [
        "test_generate.py::test_decoupled_model_with_one_response_may_be_generated",
        "test_generate.py::test_error_before_the_first_event_is_an_error_of_http",
        "test_generate.py::test_error_in_the_stream_is_an_event",
        "test_generate.py::test_error_of_the_model_is_refused_with_its_text",
        "test_generate.py::test_events_come_as_soon_as_they_are_sent",
        "test_generate.py::test_invalid_stream_request_is_refused",
        "test_generate.py::test_many_streams_at_a_time_do_not_mix",
        "test_generate.py::test_members_that_are_no_inputs_are_parameters",
        "test_generate.py::test_missing_input_is_refused",
        "test_generate.py::test_numeric_inputs_are_understood",
        "test_generate.py::test_ordinary_model_streams_one_event",
        "test_generate.py::test_outputs_are_members_of_the_answer",
        "test_generate.py::test_parameters_may_be_given_as_an_object",
        "test_generate.py::test_request_id_comes_back",
        "test_generate.py::test_single_values_and_lists_of_one_are_the_same",
        "test_generate.py::test_stream_is_an_event_stream",
        "test_generate.py::test_stream_is_one_event_for_each_response",
        "test_generate.py::test_stream_without_responses_is_empty",
        "test_generate.py::test_text_may_hold_any_character",
        "test_generate.py::test_unknown_model_is_refused",
        "test_generate.py::test_version_may_be_named",
    ],
    "Trace and log settings are not there yet.": [
        "test_options.py::test_log_can_go_to_a_file",
        "test_trace_log.py::test_changed_log_settings_come_back",
        "test_trace_log.py::test_changed_trace_settings_come_back",
        "test_trace_log.py::test_grpc_changes_trace_settings",
        "test_trace_log.py::test_grpc_log_settings",
        "test_trace_log.py::test_grpc_trace_settings_match_http",
        "test_trace_log.py::test_http_client_reads_and_changes_trace_settings",
        "test_trace_log.py::test_log_format_can_be_iso8601",
        "test_trace_log.py::test_log_level_decides_what_is_logged",
        "test_trace_log.py::test_log_settings_have_defaults",
        "test_trace_log.py::test_log_settings_of_the_command_line",
        "test_trace_log.py::test_model_may_have_settings_of_its_own",
        "test_trace_log.py::test_null_clears_a_setting_of_a_model",
        "test_trace_log.py::test_trace_settings_have_defaults",
        "test_trace_log.py::test_trace_settings_of_a_model_follow_the_server",
        "test_trace_log.py::test_traces_are_written_with_their_timestamps",
        "test_trace_log.py::test_unknown_trace_setting_changes_nothing",
        "test_trace_log.py::test_wrong_trace_setting_is_refused",
    ],
    "Iterative sequences (request rescheduling) are not there yet.": [
        "test_sequences.py::test_iterative_sequence_executes_once_for_each_response",
    ],
}


def reason(module: str, test: str) -> str | None:
    """Why this test cannot pass yet, None if it must."""
    for why, names in NOT_YET.items():
        if module in names or f"{module}::{test}" in names:
            return why
    return None
