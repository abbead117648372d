"""Errors of a backend's or plugin's own code name its file and line, and the nearest name."""

import importlib
import json
import sys

import pytest

from core.errors import AuthorError, CoreError, call_author, described, invalid, raised_at

MODULE = """
import json

from author_package.inner import check

def load(self=None):
    text = "{"
    return json.loads(text)

def nested():
    return check(0)

def refuse():
    from core.errors import invalid
    raise invalid("as intended")

def attribute():
    class Model:
        booster = 1
    return Model().boster
"""


@pytest.fixture
def author(tmp_path, monkeypatch):
    """Return the module of a package that its author has written."""
    package = tmp_path / "author_package"
    package.mkdir()
    (package / "__init__.py").write_text(MODULE)
    (package / "inner.py").write_text("def check(number):\n    return 1 / number\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("author_package")
    for name in [name for name in sys.modules if name.startswith("author_package")]:
        del sys.modules[name]


def raised(function, *given):
    with pytest.raises(AuthorError) as caught:
        call_author("mine", "load", function, *given)
    return caught.value


def test_an_error_names_backend_step_file_and_line(author):
    error = raised(author.nested)

    assert error.message == (
        "backend 'mine', load() at author_package/inner.py:2: ZeroDivisionError: division by zero"
    )
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_the_line_is_that_of_the_author_and_not_of_a_library_below(author):
    assert (
        "load() at author_package/__init__.py:8: JSONDecodeError: " in raised(author.load).message
    )


def test_an_error_with_a_kind_is_raised_unchanged(author):
    with pytest.raises(CoreError) as caught:
        call_author("mine", "load", author.refuse)

    assert type(caught.value) is CoreError
    assert caught.value.message == "as intended"


def test_an_error_of_core_or_python_alone_has_no_place():
    try:
        json.loads("{")
    except ValueError as error:
        error.__traceback__ = error.__traceback__.tb_next  # without this test

        assert raised_at(error) == ""


def test_the_traceback_follows_for_development(author, monkeypatch):
    monkeypatch.setenv("CORE_TRACEBACKS", "1")

    first, *trace = raised(author.load).message.splitlines()

    assert "JSONDecodeError: " in first
    assert trace[0] == "Traceback (most recent call last):"
    assert any("author_package/__init__.py" in line for line in trace)


def test_a_wrapper_that_hides_itself_is_not_the_author(author):
    def wrapper():
        __tracebackhide__ = True
        return author.nested()

    assert "at author_package/inner.py:2" in raised(wrapper).message


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError('unknown enum label "FP64"'), "; did you mean 'TYPE_FP64'?"),
        (
            ValueError('unknown enum label "TYPE_FP46"'),
            'ValueError: unknown enum label "TYPE_FP46"',
        ),
        (KeyError("weights"), "KeyError: 'weights'"),
        (invalid("text"), "CoreError: text"),
    ],
)
def test_a_text_ends_with_what_may_have_been_meant(error, text):
    assert described(error).endswith(text)


def test_a_misspelt_attribute_is_named_with_the_nearest(author):
    assert raised(author.attribute).message.endswith(
        "AttributeError: 'Model' object has no attribute 'boster'; did you mean 'booster'?"
    )


def test_an_object_that_cannot_list_its_attributes_does_no_harm():
    class Odd:
        def __dir__(self):
            raise RuntimeError("no")

    with pytest.raises(AttributeError) as caught:
        getattr(Odd(), "missing")  # noqa: B009 - the attribute does not exist

    assert described(caught.value) == "AttributeError: 'Odd' object has no attribute 'missing'"
