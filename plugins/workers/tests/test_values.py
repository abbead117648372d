"""Values come back as they were packed, whatever a client has put into them."""

import pytest
from core_workers.values import pack, pack_error, unpack, unpack_error
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CoreError, Kind

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
)
KEYS = st.text() | st.sampled_from(("bytes", "object"))
VALUES = st.recursive(LEAVES, lambda each: st.lists(each) | st.dictionaries(KEYS, each))


@given(VALUES)
def test_what_is_packed_comes_back(value):
    assert unpack(pack(value)) == value


@pytest.mark.parametrize("kind", Kind)
def test_errors_keep_their_kind(kind):
    error = unpack_error(pack_error(CoreError(kind, "text: \udc80 \n")))

    assert (error.kind, error.message) == (kind, "text: \udc80 \n")
