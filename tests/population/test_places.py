"""Households in one place, found in records that come in several batches."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.io.files import Records
from discreet.population import places
from discreet.programme.programme import load_programme
from tests.cli import town

Batch = tuple[Sequence[int | None], Sequence[str | None]]  # households and towns of some persons


@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize(
    ("batches", "sound"),
    [
        ([], True),
        ([([], [])], True),
        ([([7, 7, 3], ["a", "a", "b"]), ([3, 9], ["b", "a"])], True),
        ([([7, 7], ["a", "b"])], False),
        ([([7, 3], ["a", "b"]), ([3, 9], ["a", "a"])], False),
        ([([3], ["a"]), ([], []), ([9, 3], ["b", "a"])], True),
        ([([3], ["a"]), ([9, 3], ["b", "b"])], False),
        ([([3, 3, 9], ["a", None, "b"])], True),
        ([([None, None, 9], ["a", "b", "b"])], True),
        ([([3, None, 3], ["a", "a", "b"])], False),
    ],
    ids=[
        *("no batch", "no person", "adjacent", "two towns", "two towns in two batches", "apart"),
        *("apart and in two towns", "no town", "no household", "two towns around a person without household"),
    ],
)
def test_each_household_is_in_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: list[Batch], sound: bool, coded: bool
) -> None:
    """Whichever of the two ways is taken, and whether or not the towns of batches have codes of their own."""
    town.build(tmp_path)
    towns = pa.dictionary(pa.int32(), pa.string()) if coded else pa.string()
    schema = pa.schema([("hid", pa.int64()), ("town", towns)])
    made = [
        pa.record_batch([pa.array(ids, pa.int64()), pa.array(names, pa.string()).cast(towns)], schema=schema)
        for ids, names in batches
    ]
    records = Records("persons", schema, lambda *_: iter(made))
    monkeypatch.setattr(places, "open_source", lambda *_: records)
    found = list(places.divided_households(load_programme(tmp_path / "programme.toml")))
    assert [problem.value for problem in found] == (
        [] if sound else ["a household is in two places of 'town'"]
    )


NAMES = ("a", "b", " ", "", "c d", "\u3000", None)


@given(st.lists(st.tuples(*[st.integers(0, len(NAMES) - 1)] * 2), min_size=1), st.integers(0, 25))
def test_different_places_are_found_by_their_codes_and_by_their_texts(
    rows: list[tuple[int, int]], more: int
) -> None:
    """Blank texts are no names; with many columns of long dictionaries, the number of places would overflow."""
    entries = pa.array([*NAMES, *(f"unused {k}" for k in range(1000))])
    codes = [pa.array([row[k] for row in rows], pa.int32()) for k in (0, 1)] * (1 + more)
    columns = [f"column {k}" for k in range(len(codes))]
    coded = pa.record_batch([pa.DictionaryArray.from_arrays(one, entries) for one in codes], names=columns)
    plain = pa.record_batch([entries.take(one) for one in codes], names=columns)
    shown = [name if name and name.strip() else None for name in NAMES]
    wanted = {(shown[first], shown[second]) * (1 + more) for first, second in rows}
    assert set(places._distinct(coded, columns)) == wanted
    assert set(places._distinct(plain, columns)) == wanted
