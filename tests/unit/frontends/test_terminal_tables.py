"""Tables of the start, as operators know them."""

from core.options import Options
from frontends.terminal import tables


def test_a_table_is_as_wide_as_its_cells():
    assert tables.table(("Model", "Version", "Status"), [("plain", "1", "READY")]) == (
        "+-------+---------+--------+\n"
        "| Model | Version | Status |\n"
        "+-------+---------+--------+\n"
        "| plain | 1       | READY  |\n"
        "+-------+---------+--------+"
    )


def test_a_table_without_rows_still_has_its_frame():
    assert tables.table(("Repository Agent", "Path"), []).splitlines() == [
        "+------------------+------+",
        "| Repository Agent | Path |",
        "+------------------+------+",
        "+------------------+------+",
    ]


def test_a_wide_cell_is_broken_to_fit_the_terminal():
    lines = tables.table(("Model", "Status"), [("a", "x" * 30)], width=30).splitlines()

    assert {len(line) for line in lines} == {30}
    assert lines[3] == "| a     | xxxxxxxxxxxxxxxxxx |"
    assert lines[4] == "|       | xxxxxxxxxxxx       |"


def test_in_a_file_a_wide_cell_is_broken_between_words_only():
    words, path = ["word"] * 30, "/a-long-path" * 4

    lines = tables.table(("Model", "Status"), [("a", " ".join(words)), (path, "x")]).splitlines()

    assert {len(line) for line in lines} == {100}
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[0] == "|"]
    assert " ".join(status for _, status in cells).split()[1:-1] == words
    assert [path, "x"] in cells
    assert {len(line) for line in tables.table(("Path",), [["y" * 150]]).splitlines()} == {154}


def test_a_cell_cannot_break_out_of_the_table():
    table = tables.table(("Model",), [("a\n| b",)])

    assert r"| a\n| b |" in table


def test_a_very_narrow_terminal_still_gets_every_character():
    text = tables.table(("Model", "Status"), [("abc", "defg")], width=3)

    assert [line[2] + line[6] for line in text.splitlines()[8:-1]] == ["ad", "be", "cf", " g"]


def test_settings_are_shown_in_the_form_of_the_options():
    options = Options.defaults(
        model_repository=["a", "b"],
        model_control_mode="explicit",
        load_model=["m"],
        rate_limit="execution_count",
        rate_limit_resource={"r": {-1: 3}},
        cuda_memory_pool_byte_size={0: 64},
    )

    rows = tables.option_rows(options)

    assert rows == [
        ("model_repository_path[0]", "a"),
        ("model_repository_path[1]", "b"),
        ("model_control_mode", "MODE_EXPLICIT"),
        ("startup_models_0", "m"),
        ("strict_model_config", "0"),
        ("model_config_name", ""),
        ("rate_limit", "EXEC_COUNT"),
        ("rate_limit_resource[0]", '{"name":"r", "count":3 "device":-1}'),
        ("pinned_memory_pool_byte_size", "268435456"),
        ("cuda_memory_pool_byte_size{0}", "64"),
        ("min_supported_compute_capability", "6.0"),
        ("strict_readiness", "1"),
        ("exit_timeout", "30"),
        ("cache_enabled", "0"),
    ]
