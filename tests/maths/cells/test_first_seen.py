"""Codes numbered by their first occurrence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.cells.first_seen import MOST_TEXTS, first_seen, first_seen_texts


@given(st.lists(st.integers(-1, 6), max_size=40))
def test_codes_are_numbered_in_the_order_in_which_they_occur(codes: list[int]) -> None:
    numbers, order = first_seen(np.array(codes, dtype=np.int64), 7)
    assert order.tolist() == list(dict.fromkeys(code for code in codes if code >= 0))
    assert [int(order[k]) if k >= 0 else -1 for k in numbers.tolist()] == codes


def numbered(texts: list[bytes | None]) -> tuple[list[int], list[int] | None]:
    bounds = np.cumsum([0, *(len(text or b"") for text in texts)], dtype=np.int32)
    present = np.array([text is not None for text in texts], dtype=bool)
    codes = np.full(len(texts), 99, dtype=np.int16)
    joined = np.frombuffer(b"".join(text or b"" for text in texts), dtype=np.uint8)
    found = first_seen_texts(joined, bounds, present if None in texts else present[:0], codes)
    return codes.tolist(), None if found is None else found.tolist()


# lengths around those of a word, and texts that differ in one byte only
TEXTS = st.one_of(
    st.none(), st.text("ab\x00", max_size=20).map(str.encode), st.sampled_from([b"a" * 8, b"a" * 16])
)


@given(st.lists(TEXTS, max_size=60))
def test_texts_are_numbered_in_the_order_in_which_they_occur(texts: list[bytes | None]) -> None:
    codes, first = numbered(texts)
    distinct = list(dict.fromkeys(text for text in texts if text is not None))
    assert codes == [-1 if text is None else distinct.index(text) for text in texts]
    assert first == [texts.index(text) for text in distinct]


def test_more_texts_than_there_is_room_for_are_not_numbered() -> None:
    many: list[bytes | None] = [b"%d" % k for k in range(MOST_TEXTS + 1)]
    assert numbered(many)[1] is None
    assert numbered(many[:-1])[0] == list(range(MOST_TEXTS))
