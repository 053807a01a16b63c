import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.io.ptable_files import PTableFormat, WrapRule, detect, lookup_for, read_ptable, write_ptable
from discreet.maths.cells.lookup import KEYS, Lookup, Order, build, change, lookup_of_matrix, matrix_of
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from tests.cases import few

TABLE = solve(PTableParameters(D=3, V=1.5, js=1))
KEY = bytes(range(32))
KEYED = [PTableFormat.ONS, PTableFormat.CANTABULAR, PTableFormat.SUPERSTAR]
R_HEADER = "i,j,p,v,p_int_lb,p_int_ub,type\n"
R_ZERO = "0,0,1,0,0,1,all\n"


def same(one: Lookup, other: Lookup) -> bool:
    return (
        one.modulus == other.modulus
        and (one.offsets == other.offsets).all()
        and (one.upper == other.upper).all()
        and bool((one.change == other.change).all())
    )


@pytest.mark.parametrize("order", Order)
def test_r_files_give_every_threshold_back(tmp_path: Path, order: Order) -> None:
    lookup = lookup_for(TABLE, PTableFormat.R, order, None if order is Order.PLAIN else KEY)
    write_ptable(tmp_path / "t.csv", PTableFormat.R, lookup)
    found = read_ptable(tmp_path / "t.csv")
    assert found.format is PTableFormat.R
    assert same(found.lookup, lookup)
    np.testing.assert_allclose(found.law().transition_matrix, TABLE.transition_matrix, atol=1e-9)


def test_a_file_as_r_writes_it_is_read(tmp_path: Path) -> None:
    """Eight digits, as computed by R ptable 1.0.0: create_cnt_ptable(D = 2, V = 1.05, js = 1, mono = ..)."""
    path = tmp_path / "r.csv"
    path.write_text(
        R_HEADER + "0,0,1.0000000000,0,0.00000000,1.00000000,all\n"
        "1,0,0.5083333300,-1,0.00000000,0.50833333,all\n"
        "1,2,0.4750000000,1,0.50833333,0.98333333,all\n"
        "1,3,0.0166666700,2,0.98333333,1.00000000,all\n"
    )
    found = read_ptable(path)
    assert found.law().variance(1) == pytest.approx(1.05, abs=1e-6)
    keys = np.array([0, int(0.5083333 * KEYS), int(0.5083334 * KEYS), KEYS - 1])
    assert change(found.lookup, np.ones(4), keys).tolist() == [-1, -1, 1, 2]


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("order", few(Order, 0))
def test_keyed_files_survive_the_way_there_and_back(tmp_path: Path, kind: PTableFormat, order: Order) -> None:
    lookup = lookup_for(TABLE, kind, order, None if order is Order.PLAIN else KEY)
    path = tmp_path / "t.csv"
    write_ptable(path, kind, lookup)
    assert detect(path) is kind
    found = read_ptable(path)
    counts = np.repeat([0, 1, 2, 5, 20, 21, 29, 30, 31, 500, 750, 751, 10**8], 256)
    keys = np.tile(np.arange(256), 13)
    assert (change(found.lookup, counts, keys) == change(lookup, counts, keys)).all()
    assert found.law(1e-9).last_row == TABLE.last_row
    again = tmp_path / "again.csv"
    write_ptable(again, kind, found.lookup)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.long
def test_ons_with_4096_keys(tmp_path: Path) -> None:
    lookup = lookup_for(TABLE, PTableFormat.ONS, modulus=4096)
    write_ptable(tmp_path / "t.csv", PTableFormat.ONS, lookup)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[:2] == ["pcv,ckey,pvalue", "1,0,-1"]
    assert len(lines) == 1 + 750 * 4096
    found = read_ptable(tmp_path / "t.csv", modulus=4096)
    assert (found.lookup.modulus, found.lookup.wrap_from, found.lookup.wrap_length) == (4096, 501, 250)
    with pytest.raises(Mistakes, match="modulus"):
        read_ptable(tmp_path / "t.csv", modulus=256)


def ons_lines(last: int = 2, keys: int = 4) -> list[str]:
    return [f"{count},{key},{(-1, 0, 0, 1)[key % 4]}" for count in range(1, last + 1) for key in range(keys)]


def write(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_the_wrap_rule_is_explicit_and_must_fit(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "pcv,ckey,pvalue", ons_lines(last=3))
    with pytest.raises(Mistakes, match=r"ends with count 3; give the last rows .* 3:1"):
        read_ptable(path)
    with pytest.raises(Mistakes, match="wrap rule"):
        read_ptable(path, wrap=WrapRule(501, 250))
    found = read_ptable(path, wrap=WrapRule(2, 2))
    assert (found.lookup.wrap_from, found.lookup.wrap_length) == (2, 2)
    assert change(found.lookup, [0, 0], [0, 3]).tolist() == [0, 0]


def test_biased_keyed_tables_are_read_but_have_no_law(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "pcv,ckey,pvalue", ["1,0,-1", "1,1,0", "1,2,0", "1,3,0"])
    found = read_ptable(path, wrap=WrapRule(1, 1))
    assert change(found.lookup, [1], [0]).tolist() == [-1]
    with pytest.raises(Mistakes, match=r"t\.csv: count 1: the mean change is -0\.25"):
        found.law()
    assert found.law(tolerance=0.3).mean(1) == -0.25


def test_cantabular_ranges(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        "cell_value,cell_key,perturbation",
        ["1,0-63,-1", "1,64-191,0", "1,192-255,+1", "2-3,0-255,0"],
    )
    found = read_ptable(path, wrap=WrapRule(3, 1))
    assert found.format is PTableFormat.CANTABULAR
    assert matrix_of(found.lookup)[1].tolist() == [-1] * 64 + [0] * 128 + [1] * 64
    assert found.lookup.lengths(3) == {0: 256}


@pytest.mark.parametrize(
    ("change_lines", "told"),
    [
        (lambda lines: lines[:-1], "count 2: no change for key 3"),
        (lambda lines: lines[4:], "count 1: no change for key 0"),
        (lambda lines: [*lines, lines[0]], "line 10: duplicate entry for count 1, key 0"),
        (lambda lines: [*lines[:3], "1,3,one", *lines[4:]], "line 5: pvalue 'one'"),
        (lambda lines: [*lines[:3], "1,3,", *lines[4:]], "line 5: pvalue ''"),
        (lambda lines: [*lines[:3], "1,-3,1", *lines[4:]], "line 5: ckey '-3'"),
        (lambda lines: [*lines[:3], "1,3", *lines[4:]], "line 5: 2 values for 3 columns"),
        (lambda lines: [*lines[:3], "1,3,1.5", *lines[4:]], "line 5: pvalue '1.5'"),
        (lambda lines: [*lines[:3], "1,3,-2", *lines[4:]], "count 1: a change below minus the count"),
        (lambda lines: [*lines, *(f"0,{key},1" for key in range(4))], "count 0: a change of zero"),
        (lambda lines: [line.replace(",3,", ",5,") for line in lines], "the largest key is 5"),
        (lambda lines: [*lines, "999999999,0,0"], "pcv: 999999999; list counts up to 10000"),
        (lambda lines: [], "no lines"),
    ],
)
def test_every_fault_of_a_key_list_is_named(tmp_path: Path, change_lines: object, told: str) -> None:
    lines = change_lines(ons_lines())  # type: ignore[operator]
    path = write(tmp_path / "bad.csv", "pcv,ckey,pvalue", lines)
    with pytest.raises(Mistakes) as caught:
        read_ptable(path, wrap=WrapRule(2, 1))
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_many_faults_are_told_in_few_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", "pcv,ckey,pvalue", ["1,0,x"] * 500)
    with pytest.raises(Mistakes) as caught:
        read_ptable(path)
    assert len(caught.value.problems) == 11
    assert "490 more" in str(caught.value)


def test_a_reversed_range_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", "cell_value,cell_key,perturbation", ["1,9-3,0"])
    with pytest.raises(Mistakes, match="line 2: cell_key '9-3'; give the smaller end"):
        read_ptable(path, wrap=WrapRule(1, 1))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("1,0,0.25,-1,0,0.25,all\n1,1,0.5,0,0.3,0.8,all\n1,2,0.25,1,0.75,1,all\n", "line 4: a gap"),
        ("1,0,0.25,-1,0,0.25,all\n1,1,0.5,0,0.2,0.7,all\n1,2,0.25,1,0.75,1,all\n", "line 4: an overlap"),
        ("1,0,0.25,-1,0,0.25,all\n1,1,0.5,0,0.25,0.75,all\n", "i = 1: the last p_int_ub is 0.75"),
        ("1,0,0.5,-1,0,0.5,all\n1,3,0.5,2,0.5,1,all\n", "i = 1: the mean change is 0.5"),
        ("1,0,x,-1,0,0.5,all\n", "line 3: not a number"),
        ("1,0,0.5,-2,0,0.5,all\n1,2,0.5,1,0.5,1,all\n", "line 3: v = -2, j - i = -1"),
        ("1,0,0.5,-1,0,0.5,even\n1,2,0.5,1,0.5,1,odd\n", "line 3: type even"),
        ("2,0,0.5,-2,0,0.5,all\n2,4,0.5,2,0.5,1,all\n", "i: no lines for i = 1"),
        ("1,0,0.6,-1,0,0.5,all\n1,2,0.5,1,0.5,1,all\n", "line 3: p is not"),
        ("1,-1,0.5,-2,0,0.5,all\n1,3,0.5,2,0.5,1,all\n", "line 3: i = 1, j = -1"),
    ],
)
def test_every_fault_of_an_r_file_is_named(tmp_path: Path, body: str, told: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(R_HEADER + R_ZERO + body)
    with pytest.raises(Mistakes) as caught:
        read_ptable(path)
    assert f"{path}: {told}" in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["0,0,1"] * 255, "255 lines"),
        (["0,0,1"] * 100 + ["0,1"] + ["0,0,1"] * 155, "line 101: 2 values, 3 in the first line"),
        (["0,0,1"] * 100 + ["0,x,1"] + ["0,0,1"] * 155, "line 101: values that are not whole numbers"),
        (["0,0,1"] * 256, "SmallN: 10; give 1 to 3"),
    ],
)
def test_every_fault_of_a_superstar_matrix_is_named(tmp_path: Path, lines: list[str], told: str) -> None:
    path = tmp_path / "bad.pert"
    path.write_text("\n".join(lines))
    with pytest.raises(Mistakes, match=told):
        read_ptable(path)


def test_superstar_reuses_its_last_columns(tmp_path: Path) -> None:
    """With 30 columns and SmallN 10: 25 -> column 26, 31 -> 22, 39 -> 30, 40 -> 21 (SuperSTAR documentation)."""
    path = tmp_path / "t.pert"
    path.write_text("\n".join(",".join(str(column) for column in range(1, 31)) for _ in range(256)))
    lookup = read_ptable(path).lookup
    counts = [1, 20, 21, 25, 30, 31, 32, 39, 40, 41]
    assert change(lookup, counts, np.zeros(10)).tolist() == [1, 20, 22, 26, 21, 22, 23, 30, 21, 22]
    write_ptable(tmp_path / "u.pert", PTableFormat.SUPERSTAR, lookup)
    assert (tmp_path / "u.pert").read_text().split() == path.read_text().split()


def test_formats_that_cannot_hold_a_table_say_so(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="modulus"):
        write_ptable(tmp_path / "t.csv", PTableFormat.ONS, build(TABLE, Order.PLAIN))
    wrapped = lookup_of_matrix(np.zeros((4, 256), dtype=np.int64), wrap_from=2, wrap_length=2)
    with pytest.raises(Mistakes, match="wrap rule"):
        write_ptable(tmp_path / "t.csv", PTableFormat.R, wrapped)
    with pytest.raises(Mistakes, match="wrap rule"):
        write_ptable(tmp_path / "t.csv", PTableFormat.ONS, wrapped)
    with pytest.raises(Mistakes, match="choose another path"):
        write_ptable(tmp_path / "no" / "t.csv", PTableFormat.R, build(TABLE, Order.PLAIN))


def test_unknown_files_are_refused_with_the_known_headers(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="no such file"):
        read_ptable(tmp_path / "none.csv")
    for text in ("", "a,b,c\n1,2,3\n"):
        (tmp_path / "odd.csv").write_text(text)
        with pytest.raises(Mistakes, match="pcv,ckey,pvalue"):
            read_ptable(tmp_path / "odd.csv")
    (tmp_path / "odd.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(Mistakes, match="give pcv,ckey,pvalue"):
        read_ptable(tmp_path / "odd.csv", PTableFormat.ONS)


@settings(max_examples=20, deadline=None)
@given(D=st.integers(1, 6), V=st.floats(0.3, 4), modulus=st.sampled_from([256, 4096]))
def test_a_law_cut_into_few_keys_stays_unbiased_and_near(D: int, V: float, modulus: int) -> None:
    table = solve(PTableParameters(D=D, V=V))
    lookup = lookup_for(table, PTableFormat.ONS, modulus=modulus)
    for row in range(table.last_row + 1):
        law = lookup.lengths(row)
        assert sum(v * n for v, n in law.items()) == 0
        for v, p in zip(table.changes(row).tolist(), table.probabilities[row], strict=True):
            assert abs(law.get(v, 0) / modulus - p) < 3 / modulus


@pytest.mark.parametrize("lower", ["NaN", "0x10", "x", "inf", "0.3"])
def test_the_lower_bound_of_an_interval_is_checked_where_it_is_given(tmp_path: Path, lower: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"{R_HEADER}{R_ZERO}1,0,0.5,-1,{lower},0.5,all\n1,2,0.5,1,0.5,1,all\n")
    with pytest.raises(Mistakes, match=r"line 3: p is not p_int_ub - p_int_lb"):
        read_ptable(path)


def test_only_a_p_table_is_replaced_and_only_by_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "census.toml").write_text("[population]\n")
    with pytest.raises(Mistakes, match="exists and is not a p-table; give another path"):
        write_ptable(tmp_path / "census.toml", PTableFormat.R, build(TABLE, Order.PLAIN))
    assert (tmp_path / "census.toml").read_text() == "[population]\n"
    write_ptable(tmp_path / "t.csv", PTableFormat.ONS, build(TABLE, Order.PLAIN, modulus=256))
    write_ptable(tmp_path / "t.csv", PTableFormat.R, build(TABLE, Order.PLAIN))
    sound = (tmp_path / "t.csv").read_bytes()

    def full(path: Path, _: object) -> None:
        path.write_bytes(sound[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("discreet.io.ptable_files.write_r", full)
    with pytest.raises(Mistakes, match="No space left on device"):
        write_ptable(tmp_path / "t.csv", PTableFormat.R, build(TABLE, Order.PLAIN))
    assert (tmp_path / "t.csv").read_bytes() == sound
    assert sorted(place.name for place in tmp_path.iterdir()) == ["census.toml", "t.csv"]
