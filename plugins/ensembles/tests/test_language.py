"""The language of conditions."""

import math

import numpy as np
import pytest
from core_ensembles.language import expression_of
from core_ensembles.language.kinds import Form
from core_ensembles.language.nodes import Binary, Call, Literal, Logical, Name, Unary
from core_ensembles.language.parser import COMPARISONS, parse
from core_ensembles.language.tokens import LONGEST
from hypothesis import given
from hypothesis import strategies as st

from core.dtypes import BF16, BY_NAME, BYTES, FP32
from core.errors import CoreError, Kind
from core.tensor import Tensor

TENSORS = {
    "score": np.array([0.25], np.float32),
    "scores": np.array([[0.25, 0.5], [0.75, 1.0]], np.float32),
    "n": np.array([3], np.int64),
    "small": np.array([2, 250], np.uint8),
    "label": np.array([b"cat"], object),
    "mask": np.array([True, False]),
    "yes": np.array([True]),
    "none": np.zeros((0, 4), np.float32),
    "a-b": np.array([1], np.float32),
    "output_1:0": np.array([1], np.float32),
}


def holds(text, **arrays):
    tensors = {name: Tensor.of(name, array) for name, array in {**TENSORS, **arrays}.items()}
    return expression_of(text, "here").holds(tensors)


def refusal(text, forms=None):
    """The text with which an expression is refused, without its beginning."""
    with pytest.raises(CoreError) as caught:
        expression_of(text, "here").check(
            forms
            or {
                name: Form(Tensor.of(name, array).dtype, array.shape, False)
                for name, array in TENSORS.items()
            }
        )
    assert caught.value.kind is Kind.INVALID
    return caught.value.message.removeprefix("here: ")


@pytest.mark.parametrize(
    "text, value",
    [
        ("score > 0.2", True),
        ("0.2 < score", True),
        ("score >= 0.25 and score <= .25e0", True),
        ("score == 0.25 or undefined > 1", True),
        ("n != 3", False),
        ("not n == 4", True),
        ("not (yes and score > 1)", True),
        ("yes", True),
        ("yes == true", True),
        ("true or false and false", True),
        ("label == 'cat'", True),
        ('label != "dog"', True),
        ("label == 'it\\'s'", False),
        ("any(mask)", True),
        ("all(mask)", False),
        ("any(scores > 0.9)", True),
        ("all(scores > 0.9)", False),
        ("count(mask) == 1", True),
        ("count(scores >= 0.5) == 3", True),
        ("rows(scores) == 2 and size(scores) == 4", True),
        ("rows(none) > 0", False),
        ("size(none) == 0", True),
        ("any(none > 1)", False),
        ("all(none > 1)", True),
        ("max(none) > 0 or max(none) <= 0", False),  # without elements there is no maximum
        ("sum(none) == 0", True),
        ("max(scores) == 1 and min(scores) == 0.25", True),
        ("mean(scores) == 0.625", True),
        ("sum(scores) == 2.5", True),
        ("max(abs(scores - score)) == 0.75", True),
        ("-score + 1 == 0.75", True),
        ("1 - 2 - 3 == -4", True),
        ("8 / 2 / 2 == 2", True),
        ("2 + 3 * 4 == 14", True),
        ("(2 + 3) * 4 == 20", True),
        ("--1 == 1", True),
        ("n / 0 > 1e300", True),  # infinite
        ("n - n / 0 * 0 == n", False),  # not a number
        ("max(small - n) == 247", True),  # as numbers: no unsigned overflow
        ("min(small - n) == -1", True),
        ("any(small > 300)", False),
        ("n < 99999999999999999999999", True),
        ("present(score) and not present(undefined)", True),
        ("`a-b` == 1", True),
        ("output_1:0 == 1", True),
        (" \n score\t>\n0.2 ", True),
    ],
)
def test_values(text, value):
    assert holds(text) is value


def test_bf16_is_compared_as_numbers():
    bits = np.array([1.5], np.float32).view(np.uint32) >> 16
    tensor = Tensor("b", BF16, (1,), array=bits.astype(np.uint16))

    assert expression_of("b == 1.5", "").holds({"b": tensor})


@pytest.mark.parametrize("name", ["FP16", "FP32", "FP64"])
def test_a_decimal_number_is_compared_in_the_precision_of_the_tensor(name):
    assert holds("x == 0.1", x=np.array([0.1], BY_NAME[name].numpy))


def test_a_comparison_is_elementwise_and_all_elements_must_agree():
    assert holds("scores > 0.1") is True
    assert holds("scores > 1") is False
    with pytest.raises(CoreError) as caught:
        holds("scores > 0.5")
    assert caught.value.message == (
        "scores > 0.5: the value of shape [2, 2] has true and false elements; all rows of a request take the "
        "same way: write any(…) or all(…)"
    )
    with pytest.raises(CoreError, match="has no element"):
        holds("none > 1")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "an expression is missing, at character 1 of: "),
        ("score >", "expected a tensor, a value or '(', found the end, at character 8 of: score >"),
        ("> 1", "expected a tensor, a value or '(', found '>', at character 1 of: > 1"),
        ("score 1", "expected an operator or the end, found '1', at character 7 of: score 1"),
        ("(score > 1", "expected ')', found the end, at character 11 of: (score > 1"),
        ("score = 1", "unexpected '=': equality is written ==, at character 7 of: score = 1"),
        ("yes && yes", "unexpected '&': write and, at character 5 of: yes && yes"),
        ("yes || yes", "unexpected '|': write or, at character 5 of: yes || yes"),
        ("!yes", "unexpected '!': write not, or != between two values, at character 1 of: !yes"),
        ("label == 'cat", "unexpected \"'\": a text ends with the quote that begins it, at character 10"),
        ("`a-b > 1", "unexpected '`': a name between backticks ends with a backtick"),
        ("0 < score < 1", "comparisons do not chain: write a < b and b < c, at character 11"),
        ("root(score) > 1", "no function 'root'; there are any, all, count"),
        ("maxx(score) > 1", "no function 'maxx'; did you mean 'max'?, at character 1 of"),
        ("max() > 1", "expected the argument of max, found ')', at character 5"),
        ("495 == 4x", "'4x' is no number; a tensor of this name is written `4x`, at character 8"),
        ("yes and or yes", "expected a tensor, a value or '(', found 'or', at character 9"),
        ("score $ 1", "unexpected '$': names with other characters stand between backticks"),
        ("(" * 200 + "yes" + ")" * 200, "more than 40 brackets or signs within each other, at character"),
        ("+".join("1" * 200) + " > 0", "more than 100 operators in a row, at character 1"),
        ("(" * 30 + "1" + "+1+1+1+1)" * 30 + "> 0", "more than 100 operators in a row"),
        ("not " * 200 + "yes", "more than 40 brackets or signs within each other"),
        ("a" * (LONGEST + 1), "an expression has at most 2000 characters; this one has 2001"),
        ("score", "a condition is true or false; these are numbers, at character 1 of: score"),
        ("label", "a condition is true or false; these are texts"),
        ("score and yes", "'and' takes truth values, not numbers, at character 1"),
        ("not score", "'not' takes truth values, not numbers, at character 5"),
        ("label > 1", "'>' takes numbers, not texts, at character 1"),
        ("label == 1", "'==' compares texts with numbers, at character 7"),
        ("yes == 1", "'==' compares truth values with numbers"),
        ("yes + 1 > 1", "'+' takes numbers, not truth values, at character 1"),
        ("max(mask) > 1", "max takes numbers, not truth values, at character 5"),
        ("any(scores)", "any takes truth values, not numbers, at character 5"),
        ("rows(score > 1) > 1", "rows takes the name of a tensor, at character 12"),
        ("scores > 1", "several elements for each row or request; write any(…) or all(…), at character 8"),
        ("mask", "several elements for each row or request; write any(…) or all(…), at character 1"),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(text, message):
    assert message in refusal(text)


def test_what_only_a_load_can_tell_is_not_refused():
    forms = {"a": None, "b": Form(FP32, (-1,), True), "c": Form(BYTES, (1,), True)}

    expression_of("a and a > b or a == c", "").check(forms)


NUMBERS = st.one_of(
    st.integers(0, 9).map(lambda value: Literal(value, 0)),
    st.floats(0, 9, allow_nan=False).map(lambda value: Literal(value, 0)),
    st.sampled_from(["score", "scores", "n"]).map(lambda name: Name(name, 0)),
)
ARITHMETIC = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("+-*/"), inner, inner, st.just(0)),
        st.builds(Call, st.sampled_from(["min", "max", "sum", "mean", "abs"]), inner, st.just(0)),
        st.builds(Unary, st.just("-"), inner, st.just(0)),
    ),
    max_leaves=6,
)
TRUTHS = st.recursive(
    st.one_of(
        st.builds(
            Binary,
            st.sampled_from(COMPARISONS),
            ARITHMETIC,
            ARITHMETIC,
            st.just(0),
        ),
        st.sampled_from(["mask", "yes"]).map(lambda name: Call("any", Name(name, 0), 0)),
    ),
    lambda inner: st.one_of(
        st.builds(Logical, st.sampled_from(["and", "or"]), st.tuples(inner, inner), st.just(0)),
        st.builds(Unary, st.just("not"), inner, st.just(0)),
        st.builds(Call, st.sampled_from(["any", "all"]), inner, st.just(0)),
    ),
    max_leaves=6,
)


def written(node):
    """The expression as Python and this language write it, with brackets around everything."""
    if isinstance(node, Literal):
        return repr(node.value)
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Unary):
        return f"({node.operator} {written(node.operand)})"
    if isinstance(node, Call):
        return f"{node.function}({written(node.argument)})"
    if isinstance(node, Logical):
        return f"({f' {node.operator} '.join(written(each) for each in node.operands)})"
    return f"({written(node.left)} {node.operator} {written(node.right)})"


class Elements:
    """What Python's operators mean for arrays of elements: `and`, `or` and `not` element by element."""

    def __init__(self, node):
        self.node = node

    def value(self):
        node = self.node
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Name):
            array = TENSORS[node.name]
            return array if array.dtype == bool else array.astype(np.float64)
        if isinstance(node, Unary):
            value = Elements(node.operand).value()
            return ~np.asarray(value, bool) if node.operator == "not" else -np.float64(value)
        if isinstance(node, Logical):
            one, other = (np.asarray(Elements(each).value(), bool) for each in node.operands)
            return one & other if node.operator == "and" else one | other
        if isinstance(node, Binary):
            one, other = (
                np.asarray(Elements(each).value(), np.float64) for each in (node.left, node.right)
            )
            return eval(f"one {node.operator} other")
        function = {"abs": np.abs, "min": np.min, "max": np.max, "sum": np.sum, "mean": np.mean}
        function.update(any=np.any, all=np.all)
        return function[node.function](Elements(node.argument).value())


@given(TRUTHS)
def test_an_expression_has_the_value_that_numpy_computes(node):
    with np.errstate(all="ignore"):
        expected = np.asarray(Elements(node).value())

    assert holds(f"all({written(node)})") is bool(expected.all())
    assert holds(f"any({written(node)})") is bool(expected.any())


@given(TRUTHS)
def test_what_is_written_is_parsed_to_the_same_tree(node):
    found = parse(written(node))

    assert written(parse(written(found))) == written(found)


@given(st.text(alphabet="ab1.()<>=!&|'\"`+-*/, \\andornt", max_size=60))
def test_any_text_is_parsed_or_refused_with_its_position(text):
    try:
        parse(text)
    except CoreError as error:
        assert error.kind is Kind.INVALID
        assert error.message.endswith(f" of: {text}")


@given(
    st.sampled_from(COMPARISONS),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
)
def test_integers_are_compared_exactly(operator, one, other):
    array = np.array([one], np.int64)

    assert holds(f"x {operator} {other}", x=array) is eval(f"one {operator} other")
    assert holds(f"x {operator} y", x=array, y=np.array([other], np.int64)) is eval(
        f"one {operator} other"
    )


@pytest.mark.parametrize("text", ["any(x > y)", "any(x - y > 0)", "any(x > 0 and y > 0)"])
def test_shapes_that_would_multiply_are_refused(text):
    column, row = np.ones((3000, 1), np.float32), np.ones((1, 3000), np.float32)

    with pytest.raises(CoreError, match=r"\[3000, 1\] and \[1, 3000\] do not fit") as caught:
        holds(text, x=column, y=row)
    assert caught.value.kind is Kind.INVALID


@pytest.mark.parametrize("error", [TypeError("no order"), MemoryError("too large")])
def test_what_numpy_refuses_is_an_error_of_the_request(monkeypatch, error):
    def fails(node, tensors):
        raise error

    monkeypatch.setattr("core_ensembles.language.expression.evaluate", fails)
    with pytest.raises(CoreError, match=f"n > 1: {error}") as caught:
        holds("n > 1")
    assert caught.value.kind is Kind.INVALID


def test_the_names_of_an_expression_come_once_and_in_their_order():
    found = expression_of("b > a and a > `c d` or b < 1", "")

    assert [(name.name, name.at) for name in found.names] == [("b", 0), ("a", 4), ("c d", 14)]


def test_a_number_that_is_not_one_compares_as_false():
    nan = np.array([math.nan], np.float32)

    assert not holds("x > 0 or x <= 0 or x == x", x=nan)
