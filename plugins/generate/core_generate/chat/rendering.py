"""Compiles and runs chat templates with jinja2, in the sandbox.

Imported when the first template is read: jinja2 costs a start 2 MiB, and most servers have no template.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jinja2

from core_generate.chat.quick import QUICK_S, Pace, SlowTemplate, is_quick_only
from core_generate.chat.sandbox import METER, MOST_CPU_S, BoundError, Meter, Sandbox
from core_generate.chat.templates import TemplateError


def compile_template(source: str) -> jinja2.Template:
    """Return a compiled template. Raises TemplateError for wrong syntax."""
    try:
        return Sandbox().from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"line {error.lineno}: {error.message}") from None
    except Exception as error:  # nested too deep for the parser of jinja2, or of Python
        raise TemplateError(f"it cannot be compiled: {type(error).__name__}: {error}") from None


def render_template(compiled: jinja2.Template, names: Mapping[str, Any], pace: Pace) -> str:
    """Return the text that a template makes of names. Raises TemplateError that says why it makes none.

    Within `quick_only`, raises SlowTemplate for a template that exceeds a bound, now or once before.
    """
    if not is_quick_only():
        return _rendered(compiled, names, MOST_CPU_S)
    if pace.slow:
        raise SlowTemplate
    begun = time.thread_time()
    try:
        text = _rendered(compiled, names, QUICK_S)
    except TemplateError as error:
        if not error.is_bound:
            raise
        pace.slow = True
        raise SlowTemplate from None
    pace.slow = time.thread_time() - begun > QUICK_S  # between two looks at the clock
    return text


def _rendered(compiled: jinja2.Template, names: Mapping[str, Any], most_s: float) -> str:
    try:
        return compiled.render({**names, METER: Meter(most_s)})
    except BoundError as error:
        raise TemplateError(f"{error.message}; it was stopped", is_bound=True) from None
    except jinja2.UndefinedError as error:
        raise TemplateError(f"it needs what the messages lack: {error.message}") from None
    except jinja2.TemplateError as error:
        raise TemplateError(f"it refuses these messages: {error.message}") from None
    except RecursionError:
        raise TemplateError("it calls itself without end; it was stopped", is_bound=True) from None
    except Exception as error:  # whatever the template does with the messages
        raise TemplateError(f"{type(error).__name__}: {error}"[:500]) from None
