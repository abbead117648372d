"""The command: what it prints in each form, and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from repository_check.broken_models import (
    BROKEN,
    ECHO,
    ONNX,
    PYTHON,
    X,
    Y,
    onnx_model,
    parameter,
    python_model,
    write,
)

from frontends.commands.check.finding import RULES

CORE = Path(sys.executable).with_name("core")
SCHEMA = json.loads(Path(__file__).with_name("sarif_schema.json").read_text())


def run(*arguments, **options):
    return subprocess.run(
        [CORE, "check", *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture
def models(tmp_path):
    write(tmp_path / "models" / "digits", onnx_model())
    write(tmp_path / "models" / "misspelt", onnx_model("max_batch_sise: 4\n" + X + Y))
    write(tmp_path / "models" / "warned", onnx_model(ONNX + X + Y + parameter("threads", "1")))
    return tmp_path / "models"


def test_text_groups_by_model_and_ends_with_a_summary(models):
    done = run("models", cwd=models.parent)

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "digits    ok",
        "misspelt  failed",
        "  models/misspelt/config.pbtxt:1:1: error: message ModelConfig has no field 'max_batch_sise'; did "
        "you mean 'max_batch_size'? [syntax]  (--write mends it)",
        "warned    ok",
        "  models/warned/config.pbtxt:5:1: warning: model 'warned': backend 'onnxruntime' has no parameter "
        "'threads'; it has no effect [parameter]",
        "3 models, 1 failed: 1 error, 1 warning, 0 notes; --write mends 1",
    ]


def test_json_has_the_same(models, check):
    status, out = check(models, "--format", "json")

    value = json.loads(out)
    assert status == 1
    assert value["summary"] == {
        "models": 3, "failed": 1, "errors": 1, "warnings": 1, "notes": 0, "written": False,
    }  # fmt: skip
    (finding,) = value["models"][1]["findings"]
    assert (finding["line"], finding["column"]) == (1, 1)
    assert finding["edit"] == {"old": "max_batch_sise", "new": "max_batch_size"}


def test_sarif_has_the_form_of_the_standard(tmp_path):
    for name, broken in BROKEN.items():
        write(tmp_path / "all models" / name, broken.files)

    done = run("all models", "--format", "sarif", cwd=tmp_path)

    value = json.loads(done.stdout)
    jsonschema.validate(value, SCHEMA)
    results = value["runs"][0]["results"]
    rules = [each["id"] for each in value["runs"][0]["tool"]["driver"]["rules"]]
    assert rules == list(RULES)
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in results)
    assert len({each["ruleId"] for each in results}) >= 10
    (misspelt,) = [each for each in results if "max_batch_sise" in each["message"]["text"]]
    place = misspelt["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {
        "uri": "all%20models/misspelt_field/config.pbtxt",
        "uriBaseId": "%SRCROOT%",
    }
    assert place["region"] == {"startLine": 1, "startColumn": 1, "endColumn": 15}
    replacement = misspelt["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert replacement["insertedContent"] == {"text": "max_batch_size"}
    assert all(each.get("locations") for each in results)


@pytest.mark.parametrize(
    ("name", "options", "status"),
    [("digits", [], 0), ("warned", [], 0), ("warned", ["--strict"], 1), ("misspelt", [], 1)],
)
def test_the_status_says_whether_there_are_errors(models, check, name, options, status):
    assert check(models / name, *options)[0] == status


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere"], "nowhere"),
        (["s3://bucket/models"], "is no folder: copy it to this machine"),
        ([".", "--gpus", "many"], "expected a number of GPUs"),
        ([".", "--rate-limit-resource", "R"], "option format is"),
        ([], "required: PATH"),
    ],
)
def test_a_wrong_command_line_is_status_2(arguments, text, tmp_path):
    done = run(*arguments, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_colours_are_for_terminals_only(models):
    import pty

    leader, follower = pty.openpty()
    subprocess.run(
        [CORE, "check", models / "digits"], stdout=follower, check=True, env=_without_no_color()
    )
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)

    assert "\033[32mok\033[0m" in shown
    assert "\033" not in run(models / "digits").stdout


def _without_no_color():
    return {key: value for key, value in os.environ.items() if key != "NO_COLOR"}


def test_a_file_and_the_folder_of_a_model_are_checked_too(models, tmp_path, check):
    file = models / "digits" / "1" / "model.onnx"

    assert check(file)[1].splitlines()[0] == "model  ok"
    assert check(models / "digits")[1].splitlines()[0] == "digits  ok"


def test_no_code_of_a_model_runs(tmp_path, check):
    ran = tmp_path / "ran"
    code = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n" + ECHO
    write(tmp_path / "models" / "evil", python_model(code=code))

    assert check(tmp_path / "models")[0] == 0
    assert not ran.exists()
    assert check(tmp_path / "models", "--load")[0] == 0


def test_load_reports_what_only_a_load_finds(tmp_path, check):
    write(tmp_path / "models" / "later", {"1/model.py": "def f():\n    pass\n\n\n1 / 0\n"})

    assert check(tmp_path / "models")[0] == 0
    status, out = check(tmp_path / "models", "--load")
    assert status == 1
    assert "ZeroDivisionError: division by zero" in out


def test_load_says_what_it_has_loaded(models, check):
    _, out = check(models / "digits", "--load")

    assert out.startswith("digits  ok  onnxruntime, version 1, ")


def test_the_gpus_of_another_machine_can_be_given(tmp_path, check):
    text = PYTHON + "instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }\n"
    write(tmp_path / "two", python_model(text))

    assert check(tmp_path, "--gpus", "2")[0] == 0
    status, out = check(tmp_path, "--gpus", "1")
    assert status == 1
    assert "invalid or unsupported gpu id 1" in out


def test_resources_that_the_rate_limiter_refuses_are_found(tmp_path, check):
    group = 'instance_group { rate_limiter { resources { name: "R" count: 4 } } }\n'
    both = (
        'instance_group [ { rate_limiter { resources { name: "R" global: true count: 1 } } }, '
        '{ rate_limiter { resources { name: "R" count: 1 } } } ]\n'
    )
    write(tmp_path / "many" / "many", python_model(PYTHON + group))
    write(tmp_path / "both" / "both", python_model(PYTHON + both))

    assert check(tmp_path / "many")[0] == 0
    assert "is limited to 2" in check(tmp_path / "many", "--rate-limit-resource", "R:2")[1]
    assert "both global and device-specific" in check(tmp_path / "both")[1]


def test_models_of_one_name_in_two_repositories_are_an_error(tmp_path, check):
    for repository in "ab":
        write(tmp_path / repository / "same", python_model())

    status, out = check(tmp_path / "a", tmp_path / "b")

    assert status == 1
    assert "several models have this name" in out


def test_a_repository_without_models_is_an_error(tmp_path, check):
    (tmp_path / "model.onnx").touch()

    status, out = check(tmp_path)

    assert status == 1
    assert f"it holds no folder of a model (found model.onnx); try: core init {tmp_path}" in out


def test_several_faults_of_a_file_are_found_at_once(tmp_path, findings):
    text = (
        ONNX.replace("max_batch_size: 4", "max_batch_size: 4 foo: 1")
        + X.replace("TYPE_FP32", "TYPE_INT64").replace("dims: 4", "dims: 7")
        + Y.replace('"y"', '"y" label_filename: "none.txt"')
        + "dynamic_batching { preferred_batch_size: 9 }\n"
        + "response_cache { enable: true }\nmodel_transaction_policy { decoupled: true }\n"
    )
    write(tmp_path / "many", onnx_model(text))

    found = findings(tmp_path)

    assert [(each["rule"], each["line"]) for each in found] == [
        ("syntax", 2),
        ("file", 3),
        ("file", 3),
        ("configuration", 5),
        ("configuration", 6),
    ]


def test_notes_say_what_serves_models_of_other_servers(tmp_path, findings):
    write(
        tmp_path,
        {
            "resnet.mar": b"PK",
            "flow/1/MLmodel": "flavors: {}\n",
            "serve/1/handler.mar": b"PK",
            "sk/model-settings.json": "{}",
        },
    )

    notes = {each["text"] for each in findings(tmp_path) if each["rule"] == "migration"}

    for part in (
        "core import",
        "MLflow",
        "MLServer",
    ):
        assert any(part in each for each in notes), part
    assert sum("TorchServe" in each for each in notes) == 2


def test_an_encrypted_model_is_left_to_a_load(tmp_path, findings):
    text = ONNX + 'model_repository_agents { agents { name: "decrypt" } }\n'
    write(tmp_path / "secret", onnx_model(text, b"no model"))

    (note,) = findings(tmp_path)

    assert (note["level"], note["rule"]) == ("note", "unchecked")
