import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli.ptable import app
from discreet.errors import DiscreetError, InfeasiblePTable, Mistakes
from discreet.io.ptable_files import PTableFormat, read_ptable
from discreet.io.secret import make_secret
from discreet.maths.cells.lookup import change

RUNNER = CliRunner()


def run(*words: object) -> str:
    result = RUNNER.invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, DiscreetError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_json(*words: object) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--json")))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    run("make", "--D", 5, "--V", 2, "--js", 0, "--out", tmp_path / "t.csv")
    return tmp_path / "t.csv"


def test_make_writes_the_columns_of_r(table: Path) -> None:
    lines = table.read_text().splitlines()
    assert lines[0] == "i,j,p,v,p_int_lb,p_int_ub,type"
    assert lines[1] == "0,0,1.0000000000,0,0.0000000000,1.0000000000,all"
    i, j, p, v, lower, upper, kind = lines[2].split(",")
    assert (i, j, v, kind) == ("1", "0", "-1", "all")
    assert float(p) == pytest.approx(0.38893783, abs=1e-7)
    assert (float(lower), float(upper)) == (0.0, float(p))


def test_make_reports_what_it_gave_up(tmp_path: Path) -> None:
    report = run_json("make", "--D", 5, "--V", 2, "--pstay", 0.5, "--out", tmp_path / "t.csv")
    assert report["last_row"] == 5
    assert report["variances"][1] == pytest.approx(1.302474, abs=1e-5)
    assert report["notes"][0].startswith("row 1: pstay lowered from 0.5 to 0")
    assert "note: row 1: pstay lowered" in run(
        "make", "--D", 5, "--V", 2, "--pstay", 0.5, "--out", tmp_path / "t.csv"
    )


def test_make_takes_settings_per_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    words = ("--V", "0.5,1,1.5", "--pstay", "-,0.6,-", "--monotony", "yes,no,yes", "--variance", "equal")
    run("make", "--D", 3, *words, "--out", path)
    law = read_ptable(path).law()
    assert [round(law.variance(row), 5) for row in (1, 2, 3)] == [0.5, 1.0, 1.5]
    assert law.stay(2) == pytest.approx(0.6, abs=1e-6)


def test_infeasible_wishes_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(InfeasiblePTable, match="nearest feasible V is 2"):
        run("make", "--D", 5, "--V", 1, "--js", 2, "--out", tmp_path / "t.csv")
    with pytest.raises(Mistakes, match="--V: two"):
        run("make", "--D", 5, "--V", "two", "--out", tmp_path / "t.csv")
    with pytest.raises(Mistakes, match="--monotony"):
        run("make", "--D", 5, "--V", "2", "--monotony", "perhaps", "--out", tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_shuffled_order_needs_and_uses_the_secret(tmp_path: Path, table: Path) -> None:
    with pytest.raises(Mistakes, match="--secret"):
        run("make", "--D", 5, "--V", 2, "--order", "shuffled", "--out", tmp_path / "s.csv")
    make_secret(tmp_path / "secret.key")
    for order in ("shuffled", "split"):
        words = ("--order", order, "--secret", tmp_path / "secret.key", "--out", tmp_path / "s.csv")
        run("make", "--D", 5, "--V", 2, *words)
        shuffled, plain = read_ptable(tmp_path / "s.csv"), read_ptable(table)
        assert shuffled.lookup.lengths(5) == plain.lookup.lengths(5)
        assert shuffled.lookup.change.tolist() != plain.lookup.change.tolist()
    assert (tmp_path / "secret.key").read_text().strip() not in (tmp_path / "s.csv").read_text()


def test_show_prints_rows_and_transitions(table: Path) -> None:
    text = run("show", table)
    assert "5+" in text
    assert "1.3025" in text
    assert "-1..+5" in text
    assert ".389" in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text  # nothing is cut off at 80 columns


def test_show_for_machines(table: Path) -> None:
    report = run_json("show", table)
    assert report["format"] == "r"
    assert len(report["rows"]) == 6
    row = report["rows"][1]
    assert row["law"]["-1"] == pytest.approx(0.38893783, abs=1e-7)
    assert row["stay"] == pytest.approx(0.38893782, abs=1e-7)
    assert row["smallest_positive"] == 1


@pytest.mark.parametrize(
    ("name", "start"), [("t.png", b"\x89PNG"), ("t.svg", b"<svg"), ("t.html", b"<!doctype html>")]
)
def test_show_draws_a_picture(table: Path, name: str, start: bytes) -> None:
    picture = table.parent / name
    run("show", table, "--picture", picture)
    assert picture.read_bytes().lstrip().startswith(start)
    if name == "t.svg":
        assert "38.9" in picture.read_text()
    if name == "t.html":
        assert 'src="http' not in picture.read_text()


def test_an_unknown_picture_is_refused(table: Path) -> None:
    with pytest.raises(Mistakes, match=r"choose \.png, \.svg or \.html"):
        run("show", table, "--picture", table.parent / "t.gif")


def test_convert_goes_round_all_formats(table: Path) -> None:
    folder = table.parent
    run("convert", table, "--to", "ons", "--to-modulus", 512, "--out", folder / "a.csv")
    run("convert", folder / "a.csv", "--to", "cantabular", "--out", folder / "b.csv")
    assert (
        run_json("convert", folder / "b.csv", "--to", "r", "--out", folder / "c.csv")["read_as"]
        == "cantabular"
    )
    run("convert", folder / "c.csv", "--to", "superstar", "--out", folder / "d.pert")
    first, last = read_ptable(folder / "a.csv"), read_ptable(folder / "d.pert")
    assert (first.format, last.format) == (PTableFormat.ONS, PTableFormat.SUPERSTAR)
    assert first.lookup.modulus == 512
    same = change(read_ptable(folder / "b.csv").lookup, [3] * 512, range(512))
    assert (change(first.lookup, [3] * 512, range(512)) == same).all()
    last_law = last.law(1e-9)
    # 256 keys cannot hold the tails
    assert last_law.variance(last_law.row_of(5)) == pytest.approx(2.0, abs=0.15)


def test_check_tells_what_a_sound_table_is(table: Path) -> None:
    assert "valid; changes within 5, variance at most 2" in run(
        "check", table, "--V", 2, "--D", 5, "--monotone"
    )
    report = run_json("check", table)
    assert report["sound"] is True
    assert report["smallest_published"] == 1
    assert report["monotone"] is True


@pytest.mark.parametrize(
    ("demand", "told"),
    [
        (("--V", 1.5), "count 2: the variance is 2"),
        (("--D", 4), "count 1: a change of 5"),
        (("--js", 1), "count 1: 1 can be published"),
    ],
)
def test_check_refuses_in_two_lines(table: Path, demand: tuple[object, ...], told: str) -> None:
    with pytest.raises(Mistakes) as caught:
        run("check", table, *demand)
    assert f"{table}: {told}" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


def test_check_tells_a_broken_file_in_two_lines(table: Path) -> None:
    table.write_text(table.read_text().replace(",all", ",odd"))
    with pytest.raises(Mistakes, match="line 2: type odd") as caught:
        run("check", table)
    assert len(str(caught.value).splitlines()) == 2


def test_check_demands_monotony_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    run("make", "--D", 2, "--V", 1.05, "--js", 1, "--monotony", "yes,yes,no,yes", "--out", path)
    assert "not monotone" in run("check", path)
    with pytest.raises(Mistakes, match="count 3: p falls"):
        run("check", path, "--monotone")


def test_check_finds_bias_in_a_list_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pcv,ckey,pvalue\n1,0,-1\n1,1,0\n")
    with pytest.raises(Mistakes, match=r"count 1: the mean change is -0\.5"):
        run("check", path, "--wrap", "1:1")
    assert run_json("check", path, "--wrap", "1:1", "--tolerance", 0.5)["largest_bias"] == 0.5
    with pytest.raises(Mistakes, match="--wrap: last"):
        run("check", path, "--wrap", "last")
