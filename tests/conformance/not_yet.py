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
}


def reason(module: str, test: str) -> str | None:
    """Why this test cannot pass yet, None if it must."""
    for why, names in NOT_YET.items():
        if module in names or f"{module}::{test}" in names:
            return why
    return None
