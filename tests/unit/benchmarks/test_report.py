"""Rounds become rows and tables."""

import pytest

from benchmarks.report import page, summary, table
from benchmarks.report.result import Footprint, Result, Round, Row, against, read


def rounds(*rates, cpu_us=10.0, errors=0):
    return [Round(int(rate), errors, 1.0, 5.0, 9.0, cpu_us) for rate in rates]


OURS = Row("identity", "grpc", 4, "core", rounds(300, 200, 100, cpu_us=5.0))
THEIRS = Row("identity", "grpc", 4, "triton", rounds(100, 100, 50))
RESULT = Result(
    "2026-01-02",
    "python -m benchmarks --full",
    {"CPU": "some"},
    {"core": {"python": "3.11"}, "triton": {"tritonserver": "2.51.0"}},
    {"mlserver": "no wheel"},
    [OURS, THEIRS],
    [Footprint("one", "core", [0.5, 0.7, 0.6], [50.0], [60.0])],
)


def test_a_row_has_the_median_and_the_spread_of_its_rounds():
    assert (OURS.median("rate"), OURS.spread("rate")) == (200, 1.0)


def test_a_row_is_compared_round_by_round_with_the_same_cell():
    assert against([OURS, THEIRS], OURS, "triton", "rate") == 2.0
    assert against([OURS, THEIRS], OURS, "triton", "cpu_us") == 0.5


def test_a_row_of_another_cell_is_no_comparison():
    other = Row("identity", "grpc", 16, "triton", rounds(100))

    assert against([OURS, other], OURS, "triton", "rate") is None


def test_a_result_comes_back_from_its_file_as_it_was(tmp_path):
    RESULT.write(tmp_path / "result.json")

    assert read(tmp_path / "result.json") == RESULT


def test_a_file_that_is_no_result_is_refused(tmp_path):
    (tmp_path / "other.json").write_text("[]")

    with pytest.raises(ValueError, match="is no result of this benchmark"):
        read(tmp_path / "other.json")


def test_the_terminal_line_ends_with_the_ratios():
    ours, theirs = table.lines([OURS, THEIRS])

    assert ours.split()[-2:] == ["2.00", "0.50"]
    assert "200" in ours and "triton" in theirs


def test_the_page_has_machine_versions_command_date_and_missing_parts():
    text = page.markdown(RESULT)

    for words in ("2026-01-02", "CPU some", "tritonserver 2.51.0", "python -m benchmarks --full"):
        assert words in text
    assert "left out: mlserver (no wheel)" in text


def test_the_page_has_a_table_of_each_scenario_and_of_starts():
    text = page.markdown(RESULT)

    assert (
        "| grpc | 4 | 200 ± 100% | 5.0 ± 0% | 5 / 9 | 100 ± 50% | 10.0 ± 0% | 5 / 9 | 2.00 | 0.50 |"
        in (text)
    )
    assert "| one identity model | core | 0.60" in text


def test_errors_are_shown_next_to_their_figures():
    row = Row("identity", "grpc", 4, "core", rounds(100, errors=3))

    assert "(3 errors)" in page.markdown(Result("", "", {}, rows=[row]))


def test_the_text_around_the_tables_stays(tmp_path):
    before = f"# Speed\n\nwords\n{page.OPEN}\nold\n{page.CLOSE}\nmore words\n"

    after = page.put(before, "new")

    assert after == f"# Speed\n\nwords\n{page.OPEN}\n\nnew\n{page.CLOSE}\nmore words\n"


def test_a_page_without_a_place_for_tables_is_refused():
    with pytest.raises(ValueError, match="lacks the lines"):
        page.put("# Speed\n", "new")


def test_a_page_that_is_not_there_is_made(tmp_path):
    RESULT.write(tmp_path / "result.json")

    page.main([str(tmp_path / "result.json"), str(tmp_path / "page.md")])

    assert "| grpc | 4 |" in (tmp_path / "page.md").read_text()


def of_mixed(scenario, cpu_us, server="core", rate=100):
    return Row(scenario, "http-binary", 16, server, rounds(rate, rate, rate, cpu_us=cpu_us))


MIXED = Result(
    "2026-01-02",
    "python -m benchmarks",
    {},
    rows=[
        of_mixed("add_sub_mixed", 45.0, rate=400),
        of_mixed("add_sub_mixed", 150.0, "triton"),
        of_mixed("add_sub_4_rows_mixed", 38.0),
        of_mixed("add_sub_5_rows_mixed", 42.0),
        of_mixed("identity_mixed", 12.0),
    ],
)


def test_the_summary_compares_with_triton_and_with_requests_of_equal_rows():
    text = summary.markdown(MIXED)

    assert "2026-01-02, `python -m benchmarks`" in text
    assert "| Python model, http-binary | 16 | 4.0 times | 0.30 | 45.0 ± 0% | 1.12 |" in text
    assert "| identity, http-binary | 16 | - | - | 12.0 ± 0% | - |" in text


def test_the_summary_is_put_between_its_lines(tmp_path):
    MIXED.write(tmp_path / "result.json")
    (tmp_path / "page.md").write_text(f"words\n{summary.OPEN}\nold\n{summary.CLOSE}\nmore\n")

    summary.main([str(tmp_path / "result.json"), str(tmp_path / "page.md")])

    expected = summary.markdown(MIXED)
    assert (tmp_path / "page.md").read_text() == (
        f"words\n{summary.OPEN}\n\n{expected}\n{summary.CLOSE}\nmore\n"
    )


def test_a_result_without_these_scenarios_has_no_summary():
    with pytest.raises(ValueError, match="no row of core in identity_mixed, add_sub_mixed"):
        summary.markdown(RESULT)
