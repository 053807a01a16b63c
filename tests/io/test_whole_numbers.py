"""Whole numbers in text are decimal: Arrow's own reading of 0x1F as 31 would be a count that nobody wrote."""

from pathlib import Path

import pyarrow as pa
import pytest

from discreet.errors import Mistakes
from discreet.io.ptable_files import read_ptable
from discreet.io.ptable_keyed import WrapRule
from discreet.io.whole_numbers import whole_numbers
from discreet.population.encode import BadColumn, given_keys
from tests.cli.called import discreet


def test_decimal_digits_are_numbers() -> None:
    assert whole_numbers(pa.array(["0", "-3", "12", None])).to_pylist() == [0, -3, 12, None]
    assert whole_numbers(pa.array([], pa.large_string())).to_pylist() == []


@pytest.mark.parametrize("text", ["0x1F", "0X10", "0x", "1e3", "1_0", "٣", "", "1.5"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        whole_numbers(pa.array(["1", text]))
    with pytest.raises(BadColumn):
        given_keys(pa.array(["1", text]))


def test_a_p_table_with_hexadecimal_keys_is_refused(tmp_path: Path) -> None:
    lines = [f"{count},{key},{change}" for count in (1, 2) for key, change in (("0", -1), ("1", 1))]
    (tmp_path / "p.csv").write_text("\n".join(["pcv,ckey,pvalue", *lines]) + "\n")
    read_ptable(tmp_path / "p.csv", wrap=WrapRule(2, 1))
    (tmp_path / "p.csv").write_text("\n".join(["pcv,ckey,pvalue", *lines]).replace("2,1,1", "2,0x1,1") + "\n")
    with pytest.raises(Mistakes, match="'0x1'"):
        read_ptable(tmp_path / "p.csv", wrap=WrapRule(2, 1))


def test_pieces_with_a_hexadecimal_size_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("grid,lau,n\ng1,l1,0x5\ng1,l2,3\ng2,l2,9\n")
    said = discreet(
        "risk",
        "differencing",
        tmp_path / "p.csv",
        "--a",
        "grid",
        "--b",
        "lau",
        "--count",
        "n",
        "--V",
        "1",
        "--D",
        "2",
    )
    assert said.returncode == 2
    assert (
        said.stderr
        == f"{tmp_path / 'p.csv'}: n: not a whole number; give whole numbers from 0 to 1000000000000\n"
    )
