"""Compiles and runs chat templates with jinja2, in the sandbox.

Imported when the first template is read: jinja2 costs a start 2 MiB, and most servers have no template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2

from core_generate.chat.sandbox import METER, BoundError, Meter, Sandbox
from core_generate.chat.templates import TemplateError


def compile_template(source: str) -> jinja2.Template:
    """Return a compiled template. Raises TemplateError for wrong syntax."""
    try:
        return Sandbox().from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"line {error.lineno}: {error.message}") from None
    except Exception as error:  # nested too deep for the parser of jinja2, or of Python
        raise TemplateError(f"it cannot be compiled: {type(error).__name__}: {error}") from None


def render_template(compiled: jinja2.Template, names: Mapping[str, Any]) -> str:
    """Return the text that a template makes of names. Raises TemplateError that says why it makes none."""
    try:
        return compiled.render({**names, METER: Meter()})
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
