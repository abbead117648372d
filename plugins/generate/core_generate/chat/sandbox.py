"""A sandbox for chat templates: jinja2's, with bounds for time, steps and memory.

A template comes with a model's file, so its author is a stranger. jinja2's sandbox keeps it from Python's
objects. Its bounds are here: a loop in a loop, or a text that doubles, would take all time and memory.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_STEPS = 200_000  # passes of loops, and calls
MOST_CPU_S = 1.0
MOST_CHARACTERS = 16 * 1024 * 1024  # of one text
MOST_ITEMS = 1_000_000  # of one list
MOST_MADE = 512 * 1024 * 1024  # bytes, about, of all texts and lists that one rendering makes
MOST_BITS = 4_096  # of an integer
MOST_NUMBER = 1_000_000  # as an argument: widths and counts

METER = " meter"  # no template can write this name
_STEPS, _CONCAT = " steps", " concat"  # names of filters, which no template can write either
# A width in a format that is taken from an argument, or is too large.
_WIDTH = re.compile(r"%(\([^)]*\))?[^a-zA-Z%]*(\*|\d{5})|\{[^{}]*(\{|\d{5})")
_MOST_WIDTH = 9_999
_MOST_FORMAT = 100_000  # characters
_CLOCK_STEPS = 64
_CLOCK_BYTES = 65_536  # of a value, which takes microseconds
_ITEM_BYTES = 64  # an object and its place in a list
_UNSAFE_METHODS = {"encode", "expandtabs", "format_map", "translate"}  # their results may be huge
# Or they are slow, or not repeatable.
_UNSAFE_FILTERS = {"pprint", "random", "urlize", "wordwrap", "xmlattr"}


class BoundError(jinja2.TemplateError):
    """A template exceeds a bound of the sandbox."""


class Meter:
    """Counts the steps of one rendering, and what it makes. Used on one thread, for `most_s` of CPU time."""

    def __init__(self, most_s: float) -> None:
        self._steps = 0
        self._made = 0
        self._most_s = most_s
        self._until = time.thread_time() + most_s

    def step(self) -> None:
        """Count a step. Raises BoundError after MOST_STEPS; at each 64th step, also after `most_s`."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise BoundError(f"it takes more than {MOST_STEPS:,} steps; a loop may be endless")
        if self._steps % _CLOCK_STEPS == 0:
            self._check_time()

    def made(self, value: Any) -> Any:
        """Return a value; count the size of a text, list, tuple or dict, which the template has made.

        Raises BoundError if it is too large, if all together exceed MOST_MADE bytes, and if it is large after
        `most_s`.
        """
        if isinstance(value, str):
            size = len(value)
            check_size(size)
        elif isinstance(value, (list, tuple, dict)):
            size = _ITEM_BYTES * len(value)
            check_size(len(value), MOST_ITEMS, "items")
        else:
            return value
        self._made += size
        if self._made > MOST_MADE:
            raise BoundError(f"it makes more than {MOST_MADE:,} characters")
        if size > _CLOCK_BYTES:
            self._check_time()
        return value

    def _check_time(self) -> None:
        if time.thread_time() > self._until:
            raise BoundError(f"it takes longer than {self._most_s:g} s")


class GenerationTag(Extension):
    """{% generation %}…{% endgeneration %}, a mark for training: what it encloses is rendered as usual."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def check_size(size: int, most: int = MOST_CHARACTERS, unit: str = "characters") -> None:
    """Raise BoundError if `size`, that of a text or list which a template makes, exceeds `most`."""
    if size > most:
        raise BoundError(f"it makes a value of {size:,} {unit}; allowed are {most:,}")


def _concatenated(parts: Iterable[str]) -> str:
    """Return the joined parts. Raises BoundError at the part that exceeds MOST_CHARACTERS; takes no more."""
    kept: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        check_size(size)
        kept.append(part)
    return "".join(kept)


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of jinja2 in which chat templates run. A rendering needs a Meter by the name METER.

    It has the filters and functions that Hugging Face's transformers adds; it lacks those of jinja2 whose
    results may be huge, slow or not repeatable.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(_concatenated)

    def __init__(self) -> None:
        extensions = [GenerationTag, loopcontrols]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions, cache_size=0)
        own: dict[str, Callable[..., Any]] = {
            "replace": _replace,
            "join": _join_filter,
            "sum": _sum,
        }
        own |= {"tojson": _tojson, "indent": _indent, _CONCAT: _concat}
        self.filters = {
            name: _metered(function)
            for name, function in {**self.filters, **own}.items()
            if name not in _UNSAFE_FILTERS
        }
        self.filters["format"] = _metered(_format)
        self.filters[_STEPS] = _counted
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Return the tree of a template, in which each loop counts its passes, and each ~ what it makes."""
        tree = super()._parse(source, name, filename)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = _filtered(loop.iter, _STEPS, self)
        counted: nodes.Template = _Concatenations(self).visit(tree)
        return counted

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may read the attribute `attr` of `obj`, as jinja2's sandbox decides.

        It may not read methods of a text whose results may be huge.
        """
        if isinstance(obj, str) and attr in _UNSAFE_METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return and count the result of +, *, ** or %. Raises BoundError if it is or would be too large."""
        _check_operands(operator, left, right)
        return context.parent[METER].made(self.binop_table[operator](left, right))

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function or method for the template; count a step and the result, and return the result.

        Raises BoundError for an argument or a result that exceeds a bound.
        """
        meter: Meter = context.parent[METER]
        meter.step()
        _check_numbers(args, kwargs)
        method = getattr(function, "__wrapped__", function)  # the sandbox wraps str.format
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str):
            if name == "replace":
                return meter.made(_replace(owner, *args, **kwargs))
            if name == "join":
                return meter.made(_join(args[0] if args else (), owner))
            if name == "format":
                _check_format(owner, owner.count("{"), [*args, *kwargs.values()])
        return meter.made(super().call(context, function, *args, **kwargs))


class _Concatenations(NodeTransformer):
    """Replaces each a ~ b in a template's tree by a filter, which gets the context and so the Meter."""

    def __init__(self, environment: Sandbox) -> None:
        self._environment = environment

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno, environment=self._environment)
        return _filtered(parts, _CONCAT, self._environment)


def _filtered(node: nodes.Node, name: str, environment: Sandbox) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno, environment=environment)


def _metered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that calls `function`, and counts a step and the result.

    It takes a context: jinja2 does not call such filters while it compiles, when there is no Meter.
    """
    kind = getattr(function, "jinja_pass_arg", None)
    name = kind.name if kind is not None else ""

    @pass_context
    def call(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        _check_numbers(args, kwargs)
        given: dict[str, Any] = {"context": context, "eval_context": context.eval_ctx}
        given["environment"] = context.environment
        first = [given[name]] if name else []
        meter: Meter = context.parent[METER]
        meter.step()
        return meter.made(function(*first, value, *args, **kwargs))

    return call


@pass_context
def _counted(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items over which a loop goes, each after it is counted as a step."""
    step = context.parent[METER].step
    for item in items:
        step()
        yield item


def _check_numbers(args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and abs(value) > MOST_NUMBER:
            raise BoundError(f"an argument of a call exceeds {MOST_NUMBER:,}")


def _check_operands(operator: str, left: Any, right: Any) -> None:
    if operator == "%":
        if isinstance(left, str):
            parts = right.values() if isinstance(right, dict) else right
            parts = parts if isinstance(right, (tuple, dict)) else [right]
            _check_format(left, left.count("%"), parts)
    elif isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length()
        if operator != "+":
            bits = bits * right if operator == "**" else bits + right.bit_length()
        if bits > MOST_BITS:
            raise BoundError(f"it makes an integer of more than {MOST_BITS:,} bits")
    elif operator == "*":
        for one, other in ((left, right), (right, left)):
            if isinstance(one, (str, list, tuple)) and isinstance(other, int):
                check_size(
                    len(one) * other, MOST_CHARACTERS if isinstance(one, str) else MOST_ITEMS
                )


def _check_format(text: str, fields: int, values: Iterable[Any]) -> None:
    """Raise BoundError if `text`, which has `fields` places for these values, may become too large."""
    check_size(len(text), _MOST_FORMAT)
    if _WIDTH.search(text):
        raise BoundError("a format has a width of five digits, or one from an argument")
    longest = max((len(v if isinstance(v, str) else str(v)) for v in values), default=0)
    check_size(len(text) + fields * max(longest, _MOST_WIDTH))


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    text = str(value)
    _check_operands("%", text, kwargs or args)
    return str(text % (kwargs or args))


def _replace(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    whole, before, after = str(text), str(old), str(new)
    limit = -1 if count is None else count
    found = whole.count(before) if limit < 0 else min(whole.count(before), limit)
    check_size(len(whole) + found * (len(after) - len(before)))
    return whole.replace(before, after, limit)


def _concat(parts: Iterable[Any]) -> str:
    return _concatenated(map(str, parts))


@jinja2.pass_environment
def _join_filter(
    environment: jinja2.Environment, value: Iterable[Any], d: Any = "", attribute: Any = None
) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return _join(value, d)


def _join(value: Iterable[Any], d: Any = "") -> str:
    parts, between = [str(each) for each in value], str(d)
    check_size(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


@jinja2.pass_environment
def _sum(
    environment: jinja2.Environment, value: Iterable[Any], attribute: Any = None, start: Any = 0
) -> Any:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    numbers = [start, *value]
    if not all(isinstance(each, (int, float)) for each in numbers):
        raise BoundError("the filter 'sum' adds numbers only")
    return sum(numbers)


def _indent(value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text, indent = str(value), width if isinstance(width, str) else " " * width
    check_size(len(text) + (text.count("\n") + 1) * len(indent))
    lines = [indent + each if each or blank else each for each in text.split("\n")]
    if not first:
        lines[0] = text.split("\n", 1)[0]
    return "\n".join(lines)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return a value as JSON, without jinja2's escapes for HTML. Raises BoundError for too wide an indent."""
    if (indent or 0) > 16 or len("".join(separators or ())) > 16:
        raise BoundError("tojson: at most 16 characters of indent, and of separators")
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: Any) -> NoReturn:
    raise jinja2.TemplateError(str(message)[:1_000])


def _strftime_now(form: str) -> str:
    if _WIDTH.search(form) or len(form) > 1_000:
        raise BoundError("the format of a time is too long")
    return datetime.now().strftime(form)
