"""Damaged inputs: a short slice in every run, many in the long one. Any fault prints the input that led to it."""

import contextlib
import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError, Mistakes
from discreet.io.ptable_files import read_ptable
from discreet.maths.exact_numbers import fraction
from discreet.maths.privacy.accounting import read_loss
from discreet.release.reader import read_codes
from tests.fuzz.commands import fuzz, prepare

MANY = int(os.environ.get("DISCREET_FUZZ", "20000"))  # inputs of the long run; about 0.04 s each
READERS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with contextlib.chdir(tmp_path):
        prepare(tmp_path)
        return tmp_path


def test_some_damaged_inputs_end_with_a_message(folder: Path) -> None:
    with contextlib.chdir(folder):
        assert fuzz(60, seed=1).faults == {}


@pytest.mark.long
def test_many_damaged_inputs_end_with_a_message(folder: Path) -> None:
    with contextlib.chdir(folder):
        found = fuzz(MANY, seed=2)
    assert found.inputs == MANY
    assert found.faults == {}
    assert found.codes[2] > MANY / 4


HEADERS = ("i,j,p,p_int_ub", "pcv,ckey,pvalue", "cell_value,cell_key,perturbation", "0,1,-1")
CELLS = st.one_of(
    st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(("0-255", "1e400", "-0", "٣"))
)


@READERS
@given(header=st.sampled_from(HEADERS), rows=st.lists(st.lists(CELLS, min_size=3, max_size=4), max_size=6))
def test_any_p_table_file_is_read_or_refused(tmp_path: Path, header: str, rows: list[list[object]]) -> None:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "p.csv").write_text("\n".join(lines), encoding="utf-8", errors="replace")
    with contextlib.suppress(Mistakes):
        read_ptable(tmp_path / "p.csv")


@READERS
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    for read in (read_ptable, read_codes):
        with contextlib.suppress(DiscreetError):
            read(tmp_path / "f")


@given(text=st.one_of(st.text(max_size=30), st.from_regex(r"-?[0-9]{1,5}([./][0-9]{1,5})?(e-?[0-9]{1,12})?")))
def test_any_number_is_read_within_bounds_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert abs(fraction(text)) <= 10**15
    with contextlib.suppress(Mistakes):
        read_loss(f"epsilon={text}")


@pytest.mark.parametrize(
    "text", ["1e999999999", "1e-999999999", "1/0", "nan", "inf", "9" * 2000, "1e16", "1e-101"]
)
def test_numbers_beyond_all_bounds_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|long|zero"):
        fraction(text)


def test_numbers_that_people_write_are_exact() -> None:
    assert [fraction(text) for text in ("0.1", "1/3", " 2 ", "1e-10", "0", "-5")] == [
        Fraction(1, 10),
        Fraction(1, 3),
        2,
        Fraction(1, 10**10),
        0,
        -5,
    ]
