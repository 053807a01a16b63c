"""Ids that are blank are none: the fuzzers found a record whose id was a line break in quotes."""

import pyarrow as pa
import pytest

from discreet.population.encode import BadColumn, hashed_ids, hashed_values


@pytest.mark.parametrize("blank", ["", " ", "   ", "\t", "\r", "\n", "\xa0", "\u3000"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_a_blank_id_is_refused(blank: str, kind: pa.DataType) -> None:
    ids = pa.array(["a", "b", blank, "c"], pa.string()).cast(kind)
    with pytest.raises(BadColumn, match="ids that are blank"):
        hashed_ids(ids, bytes(32), "x")
    assert len(hashed_values(ids, bytes(32), "x")) == 4


@pytest.mark.parametrize("texts", [["a", "é", " b", "b ", "年"], [], ["\x00"]])
def test_other_texts_are_ids(texts: list[str]) -> None:
    ids = pa.array([*texts, ""], pa.string()).slice(0, len(texts))
    assert hashed_ids(ids, bytes(32), "x").tolist() == hashed_values(ids, bytes(32), "x").tolist()
