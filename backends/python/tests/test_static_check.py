"""What is found in a model.py without running it."""

import logging

import pytest
from backend_python import backend
from backend_python.server.static_check import check_version

from core.config import ModelConfig
from core.errors import CoreError

CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n        pass\n"
COMPLETE = "    @staticmethod\n    def auto_complete_config(config):\n        return config\n"


@pytest.fixture
def check(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "library.py").touch()

    def check(code, **parameters):
        (tmp_path / "1" / "model.py").write_text(code)
        config = ModelConfig(name="m", default_model_filename="model.py")
        for name, value in parameters.items():
            config.parameters[name].string_value = value
        return check_version(config, tmp_path / "1", backend)

    return check


@pytest.mark.parametrize(
    "code",
    [
        CLASS,
        "if True:\n    " + CLASS.replace("\n", "\n    ") + "\n",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n" + CLASS,
        "class TritonPythonModel:\n    async def execute(self, requests):\n        pass\n",
        "class TritonPythonModel:\n    execute = print\n",
        "import os.path, numpy.linalg, triton_python_backend_utils as pb\nimport library\n" + CLASS,
        "try:\n    import no_such_module\nexcept ImportError:\n    pass\n" + CLASS,
        "import sys\nsys.path.append('/opt/more')\nimport no_such_module\n" + CLASS,
        "import library\nimport no_such_module\n" + CLASS,
        "import os\nos.system('pip install it')\nimport no_such_module\n" + CLASS,
        "import os\nstatus = os.system('pip install it')\nimport no_such_module\n" + CLASS,
        "from . import other\nimport no_such_module\n" + CLASS,
        CLASS + "        import no_such_module\n",
        "from . import other\nfrom .other import part\n" + CLASS,
        f"# {'-' * 120}\n{CLASS}",
    ],
)
def test_a_plain_class_says_all(check, code):
    assert check(code) is True


@pytest.mark.parametrize(
    "code",
    [
        CLASS + COMPLETE,
        "from library import *\n",
        "from library import TritonPythonModel\n",
        "import library\nTritonPythonModel = library.make()\n",
        CLASS.replace("Model:", "Model(object):"),
        "globals()['TritonPythonModel'] = 1\n",
        f"table = [{'1.5, ' * 20_000}]\n{CLASS}",
        f"{CLASS}if unknown:\n    del TritonPythonModel\n",
        "x = " + "1+" * 30_000 + "1\n",
        "x = " + "(" * 1000,
        "x = " + "-" * 100_000 + "1\n",
    ],
)
def test_what_code_may_change_is_left_to_a_load(check, code):
    assert check(code) is False


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("class TritonPythonModel\n", "line 1: SyntaxError"),
        ("x = 1\n", "has no class TritonPythonModel: it defines x"),
        ("", "has no class TritonPythonModel: it defines nothing"),
        ("\0", "null bytes"),
        (CLASS + "del TritonPythonModel\n", "has no class TritonPythonModel: it defines nothing"),
        (f"import os\nimport no_such_module.part\n{CLASS}", "line 2: .* named 'no_such_module'"),
        (f"from no_such_module import part\n{CLASS}", "line 1: .* named 'no_such_module'; install"),
        (
            f'"""Text."""\nNAMES = ["a"]\nimport no_such_module\n{CLASS}',
            "line 3: .* 'no_such_module'",
        ),
    ],
)
def test_what_a_load_refuses_is_an_error(check, code, text):
    with pytest.raises(CoreError, match=text):
        check(code)


def test_a_class_without_execute_is_a_warning(check, caplog):
    with caplog.at_level(logging.WARNING, "core"):
        assert check("class TritonPythonModel:\n    pass\n") is True

    assert "does not implement `execute`" in caplog.text


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"EXECUTION_MODE": "fork"}, "expected one of process, shared, thread, inline"),
        ({"EXECUTE_TIMEOUT_SECONDS": "soon"}, "EXECUTE_TIMEOUT_SECONDS"),
        ({"EXECUTION_ENV_PATH": "$$TRITON_MODEL_DIRECTORY/env.tar.gz"}, "does not exist"),
        ({"EXECUTION_ENV_PATH": "$$TRITON_MODEL_DIRECTORY/library.py"}, "no archive of a kind"),
        ({"REQUIREMENTS": "none.txt"}, "there is no file 'none.txt'"),
        ({"FORCE_CPU_ONLY_INPUT_TENSORS": "maybe"}, "expected yes or no"),
    ],
)
def test_a_wrong_parameter_is_an_error(check, parameters, text):
    with pytest.raises(CoreError, match=text):
        check(CLASS, **parameters)


def test_a_module_that_is_missing_here_is_left_to_an_environment_of_the_model(check, tmp_path):
    (tmp_path / "env").mkdir()

    assert check(f"import no_such_module\n{CLASS}", EXECUTION_ENV_PATH=str(tmp_path / "env"))


@pytest.mark.parametrize("name", ["part.py", "part/__init__.py", "part.cpython-311-x.so"])
@pytest.mark.parametrize("folder", ["", "1/"])
def test_modules_of_the_model_are_found_beside_its_file(check, tmp_path, folder, name):
    module = tmp_path / folder / name
    module.parent.mkdir(parents=True, exist_ok=True)
    module.touch()

    assert check(f"import part\n{CLASS}") is True


def test_wrong_syntax_for_this_python_is_left_to_an_environment_of_the_model(check, tmp_path):
    (tmp_path / "env").mkdir()

    assert check("print 'hello'\n", EXECUTION_ENV_PATH=str(tmp_path / "env")) is False
