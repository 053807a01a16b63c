"""Files of utilities: both forms, and every mistake with its line."""

from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme.utility_file import read_utility


def written(folder: Path, text: str) -> Path:
    path = folder / "utility.csv"
    path.write_text(text)
    return path


def test_a_table_by_count_and_one_by_change(tmp_path: Path) -> None:
    by_count = read_utility(
        written(tmp_path, "count,published,utility\n1,1,0\n1,0,-1/3\n0,0,0\n0,1,-0.5\n1,2,-1\n")
    )
    assert [row.first for row in by_count.rows] == [0, 0]
    assert by_count.rows[1].values == (Fraction(-1, 3), Fraction(0), Fraction(-1))
    by_change = read_utility(written(tmp_path, "Change, Utility\n-1,-1\n0,0\n1,-1\n\n"))
    assert by_change.rows[0].first == -1
    assert by_change.last == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "columns none"),
        ("a,b\n1,2\n", "columns a,b; write the columns count,published,utility"),
        ("change,utility\n0,x\n", "line 2: 0,x"),
        ("change,utility\n0.5,1\n", "line 2: 0.5,1"),
        ("change,utility\n0,1,2\n", "line 2"),
        ("change,utility\n0,1\n0,2\n", "line 3: 0 is listed twice"),
        ("change,utility\n0,1\n2,2\n", "count 0: 1 is not listed"),
        ("count,published,utility\n1,0,0\n1,1,0\n", "no row of count 0"),
        ("count,published,utility\n-1,0,0\n0,0,0\n0,1,0\n-1,1,0\n", "a count of -1"),
        ("change,utility\n0,1\n", "at least two published values"),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Mistakes, match=r"utility\.csv") as caught:
        read_utility(written(tmp_path, text))
    assert said in str(caught.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "x.csv", tmp_path / "none.csv"):
        with pytest.raises(Mistakes, match="cannot be read"):
            read_utility(path)
