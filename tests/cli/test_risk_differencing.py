"""The command finds slivers in microdata and in tables of pieces, tells no size, and words every mistake in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.risk import app
from discreet.errors import DiscreetError, Mistakes
from discreet.io.ptable_files import PTableFormat, write_ptable
from discreet.maths.cells.lookup import Order, build
from discreet.maths.noise.ptable_solver import PTableParameters, solve

PIECES = [("g1", "l10", 500), ("g1", "l11", 40), ("g2", "l12", 300), ("g2", "l11", 3)]
AREAS = ("--a", "grid", "--b", "lau")


@pytest.fixture
def pieces(tmp_path: Path) -> Path:
    file = tmp_path / "pieces.csv"
    file.write_text("grid,lau,n\n" + "".join(f"{a},{b},{n}\n" for a, b, n in PIECES), encoding="utf-8")
    return file


def records() -> pa.Table:
    rows = [(a, b) for a, b, n in PIECES for _ in range(n)]
    order = np.random.default_rng(1).permutation(len(rows))
    grid, lau = zip(*(rows[k] for k in order), strict=True)
    return pa.table({"grid": grid, "id": list(range(len(rows))), "lau": [int(code[1:]) for code in lau]})


def run(*words: object) -> str:
    result = CliRunner().invoke(app, ["differencing", *(str(word) for word in words)])
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


def test_a_table_of_pieces_gives_its_sliver(pieces: Path) -> None:
    report = run_json(*AREAS, pieces, "--count", "n")
    assert (report["found"], report["complete"], report["exhaustive"]) == (1, True, True)
    assert (report["areas"], report["pieces"], report["after"]) == ([2, 3], 4, None)
    assert report["listed"] == [
        {"plus_of": "grid", "plus": ["g2"], "minus_of": "lau", "minus": ["l12"], "above": None}
    ]
    assert run_json(*AREAS, pieces, "--count", "n", "--threshold", "3")["found"] == 0
    assert run_json(*AREAS, pieces, "--count", "n", "--most", "0")["listed"] == []


def test_records_give_the_same_from_csv_parquet_and_a_folder(tmp_path: Path) -> None:
    table = records()
    pa_csv.write_csv(table, tmp_path / "all.csv")
    pq.write_table(table, tmp_path / "all.parquet")
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in range(3):
        pq.write_table(table.slice(k * 300, 300), folder / f"{k}.parquet")
    reports = [run_json(*AREAS, tmp_path / name) for name in ("all.csv", "all.parquet", "parts")]
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["listed"][0]["minus"] == ["12"]
    assert (reports[0]["found"], reports[0]["pieces"]) == (1, 4)


def test_for_people_it_is_told_in_words_without_sizes(pieces: Path) -> None:
    text = run(*AREAS, pieces, "--count", "n")
    assert "an area with fewer than 10 records: 1\n" in text
    assert "grid g2 without lau l12" in text
    assert "these are all" in text
    assert not {"500", "40", "300", "303", "43"} & set(text.split())
    assert "--V" not in run(*AREAS, pieces, "--count", "n", "--threshold", "3")
    assert "(above alpha)" in run(*AREAS, pieces, "--count", "n", "--V", "0.05", "--D", "1")


@pytest.mark.parametrize(
    ("words", "chance"),
    [
        (("--V", 2), 0.19741),
        (("--V", 2, "--D", 5), 0.19937),
        (("--kind", "cell-key", "--V", 2, "--D", 5), 0.19937),
        (("--kind", "uniform", "--bound", 5), 1 / 11),
        (("--kind", "geometric", "--epsilon", "50"), 1.0),
        (("--kind", "discrete-gaussian", "--rho", "1/8"), 0.14105),
    ],
)
def test_what_noise_leaves(pieces: Path, words: tuple[object, ...], chance: float) -> None:
    after = run_json(*AREAS, pieces, "--count", "n", *words)["after"]
    assert after["expected"] == after["largest"] == pytest.approx(chance, abs=1e-5)
    assert after["above"] == (chance >= 0.5)


def test_the_noise_of_a_ptable_file(pieces: Path, tmp_path: Path) -> None:
    lookup = build(solve(PTableParameters(5, 2.0)), Order.PLAIN)
    write_ptable(tmp_path / "p.csv", PTableFormat.R, lookup)
    after = run_json(*AREAS, pieces, "--count", "n", "--ptable", tmp_path / "p.csv")["after"]
    assert after["expected"] == pytest.approx(0.19937, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--a", "grid", "--b", "laus"), "did you mean 'lau'"),
        (("--a", "grid", "--b", "grid"), "the same column twice"),
        ((*AREAS, "--count", "grid"), "the same column twice"),
        ((*AREAS, "--threshold", "1"), "from 2 to 1000"),
        ((*AREAS, "--reach", "0"), "from 1 to"),
        ((*AREAS, "--alpha", "0"), "between 0 and 1"),
        ((*AREAS, "--V", "-1"), "above 0"),
        ((*AREAS, "--bound", "1"), "name the noise with --kind"),
        ((*AREAS, "--D", "5"), "V: missing for cell-key"),
        ((*AREAS, "--kind", "laplace", "--epsilon", "1"), "bound: missing"),
        ((*AREAS, "--ptable", "t.csv", "--V", "1"), "leave out the other options"),
    ],
)
def test_mistakes_in_what_is_asked(pieces: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        run(*words, pieces)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grid,lau,n\n", "no records"),
        ("grid,lau,n\ng1,l1,0\n", "no records"),
        ("grid,lau,n\ng1,,3\n", "rows without an area"),
        ("grid,lau,n\ng1,l1,\n", "rows without a number"),
        ("grid,lau,n\ng1,l1,-4\n", "out of range"),
        ("grid,lau,n\ng1,l1,2.5\n", "not a whole number"),
        ("grid,lau,n\ng1,l1,many\n", "not a whole number"),
        ("grid,lau,n\ng1,l1\n", "record 1 has 2 fields instead of 3"),
        ("", "not a CSV file"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "wrong.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Mistakes, match=said) as caught:
        run(*AREAS, file, "--count", "n")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("column", [[1.5, 2.5], [None, "x"], [[1], [2]], [b"x", b"y"], [None, None]])
def test_columns_that_hold_no_areas(tmp_path: Path, column: list[Any]) -> None:
    pq.write_table(pa.table({"grid": column, "lau": ["1", "2"]}), tmp_path / "odd.parquet")
    with pytest.raises(Mistakes, match=r"grid: (values of type|rows without an area)"):
        run(*AREAS, tmp_path / "odd.parquet")


def test_a_mistake_ends_with_code_2_and_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet", "risk", "differencing", *AREAS, "absent.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "absent.csv" in done.stderr
