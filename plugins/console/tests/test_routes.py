"""What the paths of the console answer, without a browser."""

import json
import sys
import time
import urllib.request
from urllib.parse import urljoin

import pytest
from core_console.description import described_loops, described_steps

from core.config import parse_text


def write(models):
    models.identity("steady", [4], more="dynamic_batching { max_queue_delay_microseconds: 100 }\n")
    models.identity("spare", [4])
    models.identity("traced", [4])
    models.identity("resample", [16])
    models.ensemble("speech", "resample", "resample")


@pytest.fixture(scope="module")
def served(serve_all):
    found = serve_all(write, "--model-control-mode=explicit", "--load-model=*")
    return found.ready("steady", "spare", "traced", "speech")


def test_a_browser_is_sent_to_the_page_and_other_clients_are_not(served):
    browser = served.ask("", headers={"Accept": "text/html,*/*"})
    client = served.ask("")

    assert (browser[0], browser[1]["Location"]) == (307, "console")
    assert (client[0], json.loads(client[2])) == (404, {"error": "Not Found"})


def test_a_slash_at_the_end_is_sent_to_the_page_also_behind_a_prefix(served):
    status, headers, _ = served.ask("console/")

    place = headers["Location"]
    assert (status, urljoin(f"{served.url}console/", place)) == (307, f"{served.url}console")
    assert urljoin("https://proxy/core/console/", place) == "https://proxy/core/console"


def test_the_files_name_no_other_server_and_permit_nothing_else(served):
    status, headers, text = served.ask("console")
    script = served.ask("console/app.js")
    unknown = served.ask("console/secret.txt")
    outside = served.ask("console/..%2foptions.py")

    assert status == script[0] == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert script[1]["Content-Type"] == "text/javascript; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "<script>" not in text and "style=" not in text
    assert unknown[0] == outside[0] == 404


def test_the_stream_begins_with_everything_and_goes_on_with_what_has_changed(served):
    served.infer("steady", 2, 4)

    (first, whole), (second, delta) = served.events(2)

    rows = {row["model"]: row for row in whole["rows"]}
    assert (first, second) == ("whole", "delta")
    assert {"resample", "speech", "steady"} <= rows.keys()
    assert rows["steady"]["ok"] == 1 and rows["steady"]["batches"] == {"2": 1}
    assert rows["steady"]["lanes"] == {"steady_0": [0, 0.0]}
    assert rows["speech"]["ensemble"] and not rows["steady"]["ensemble"]
    assert rows["steady"]["delay_us"] == 100
    assert delta["rows"] == [] and delta["gone"] == []
    assert delta["at_ms"] > whole["at_ms"]
    assert len(whole["processes"]) == 1


def test_a_model_that_is_unloaded_is_in_the_stream(served):
    served.ask("v2/repository/models/spare/unload", {})

    row = {"state": "UNLOADING"}
    while row["state"] == "UNLOADING":
        ((_, whole),) = served.events(1)
        (row,) = [row for row in whole["rows"] if row["model"] == "spare"]

    assert (row["state"], row["reason"]) == ("UNAVAILABLE", "unloaded")


def test_the_description_marks_the_lines_that_the_server_has_added(served):
    found = served.json("console/models/steady")

    marks = {text.strip(): mark for mark, text in found["lines"]}
    assert marks["max_batch_size: 8"] == " "
    assert marks['name: "steady"'] == "+"
    assert found["file"].startswith('backend: "identity"')
    assert [name for name, _, _ in found["stages"]] == [
        *("admit", "batcher", "gather", "execute", "split", "deliver")
    ]
    assert "steady_0" in found["stages"][3][2]


def test_the_description_of_an_ensemble_has_its_steps(served):
    found = served.json("console/models/speech/versions/1")

    assert [each["model"] for each in found["steps"]] == ["resample", "resample"]
    assert found["steps"][0]["inputs"] == {"INPUT0": "samples"}
    assert found["steps"][0]["condition"] == "" and found["loops"] == []


def test_the_description_of_an_ensemble_has_its_conditions_and_loops():
    config = parse_text(
        """
        ensemble_scheduling {
          step [ { model_name: "a" output_map { key: "y" value: "one" } },
                 { model_name: "b" input_map { key: "x" value: "one" } output_map { key: "y" value: "two" } },
                 { model_name: "c" input_map { key: "x" value: "in" } output_map { key: "y" value: "z" } } ]
        }
        parameters { key: "step[2].unless" value { string_value: "max(one) > 1 and present(in)" } }
        parameters { key: "step[2].else" value { string_value: "two -> z" } }
        parameters { key: "loop[0].steps" value { string_value: "0-1" } }
        parameters { key: "loop[0].while" value { string_value: "max(two) > 1" } }
        parameters { key: "loop[0].max_turns" value { string_value: "5" } }
        """,
        "test",
    )

    steps = described_steps(config)
    assert steps[2]["condition"] == "unless max(one) > 1 and present(in)"
    assert [each["reads"] for each in steps] == [[], [], ["one", "two"]]
    assert described_loops(config) == [{"first": 0, "last": 1, "while": "max(two) > 1", "turns": 5}]


def test_a_model_that_does_not_serve_has_no_description(served):
    status, _, text = served.ask("console/models/nothing")

    assert status == 404
    assert "model 'nothing' does not serve" in json.loads(text)["error"]


def test_a_configuration_of_a_load_request_is_shown_without_the_file(served):
    config = json.dumps({"backend": "identity", "max_batch_size": 3, **_tensors()})
    body = {"parameters": {"config": config}}
    assert served.ask("v2/repository/models/spare/load", body)[0] == 200

    found = served.json("console/models/spare")

    assert found["overridden"] and found["file"] == ""
    assert [" ", "max_batch_size: 3"] in found["lines"]


def _tensors():
    return {
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [4]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [4]}],
    }


def test_traces_are_off_until_the_page_turns_them_on(served):
    served.infer("traced", 1, 4)
    before = served.json("console/traces")["traces"]
    served.json(
        "v2/models/traced/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}
    )
    served.infer("traced", 1, 4)

    (trace,) = served.json("console/traces?model=traced")["traces"]

    assert before == []
    assert trace["model"] == "traced" and trace["error"] == ""
    assert trace["spans"][0]["instance"] == "traced_0"
    names = [name for name, _ in trace["spans"][0]["stamps"]]
    assert names.index("QUEUE_START") < names.index("COMPUTE_START") < names.index("REQUEST_END")
    assert served.json("console/traces?model=speech")["traces"] == []


def test_warnings_and_errors_of_the_log_are_kept(served):
    served.ask("v2/repository/models/none/load", {})

    found = served.json("console/notices")["notices"]

    assert any("none" in each["text"] for each in found), found
    assert all(each["level"] in ("warning", "error") for each in found)


def test_operations_with_a_path_of_their_own_are_listed(served):
    (found,) = [
        each
        for each in served.json("console/operations")["operations"]
        if each["name"] == "repository.poll"
    ]

    assert found["category"] == "model-repository" and found["changes"]


def test_the_server_stops_at_once_while_a_page_is_open(models, serve):
    models.identity("steady", [4])
    served = serve()
    with urllib.request.urlopen(f"{served.url}console/stream", timeout=30) as stream:
        stream.readline()
        seconds = served.stop()

    assert served.process.returncode == 0
    assert seconds < 10  # --exit-timeout-secs is 30


def test_a_terminal_shows_where_the_page_is(models, serve):
    models.identity("steady", [4])
    served = serve("--terminal=always").ready("steady")
    end = time.monotonic() + 60
    while "try" not in served.log.read_text():  # the last line of a start
        assert time.monotonic() < end, served.log.read_text()
        time.sleep(0.05)

    assert f"console  \x1b[0mhttp://127.0.0.1:{served.port}/console" in served.log.read_text()


def test_without_the_flag_there_is_no_console(models, serve):
    served = serve("--allow-console=false")

    assert served.ask("console")[0] == 404
    assert served.ask("", headers={"Accept": "text/html"})[0] == 404
    assert "kept" not in served.json("v2/trace/setting")


@pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")
def test_workers_are_shown_as_one_server(models, serve):
    pytest.importorskip("core_workers", reason="the plugin core-workers is not installed")
    models.identity("steady", [4])
    served = serve("--workers=2").ready("steady")
    for _ in range(20):
        served.infer("steady", 1, 4)

    ((_, whole),) = served.events(1)

    (row,) = whole["rows"]
    assert row["ok"] == 20
    assert sorted(row["lanes"]) == ["worker 1 · steady_0", "worker 2 · steady_0"]
    assert [each["number"] for each in whole["processes"]] == [1, 2]
