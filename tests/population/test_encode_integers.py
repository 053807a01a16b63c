"""Codes that are whole numbers: listed or hashed, of any width, they encode as their texts do."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from discreet.population.values import Coder, Wrong

TYPES = (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64())


@given(st.sampled_from(TYPES), st.lists(st.integers(0, 127), max_size=30))
def test_numbers_encode_as_their_texts(kind: pa.DataType, values: list[int]) -> None:
    leaves = {str(code): leaf for leaf, code in enumerate(range(0, 128, 3))}
    found = Coder(leaves).encode(pa.array(values, kind))
    expected = Coder(leaves).encode(pa.array(map(str, values), pa.string()))
    unknown = {str(value) for value in values if value % 3}
    assert found.wrong == expected.wrong == ({Wrong.UNKNOWN: unknown} if unknown else {})
    np.testing.assert_array_equal(found.codes, expected.codes)


def test_the_ends_of_a_type_do_not_overflow() -> None:
    values = [-128, 127, 0]
    leaves = {str(value): leaf for leaf, value in enumerate(values)}
    found = Coder(leaves).encode(pa.array(values, pa.int8()))
    assert not found.wrong
    assert found.codes.tolist() == [0, 1, 2]
    largest = [2**64 - 1, 2**64 - 2]
    found = Coder({str(v): k for k, v in enumerate(largest)}).encode(pa.array(largest, pa.uint64()))
    assert not found.wrong
    assert found.codes.tolist() == [0, 1]
