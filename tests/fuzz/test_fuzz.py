"""Damaged inputs: a short slice in every run, many in the long one. Any fault prints the input that led to it."""

import contextlib
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError, Mistakes
from discreet.io.ptable_files import read_ptable
from discreet.maths.exact_numbers import fraction
from discreet.maths.privacy.accounting import read_loss
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.release.reader import read_codes
from discreet.serve.http.geometry import read_geometry
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable
from tests.cases import few
from tests.cli import town
from tests.fuzz.commands import READ, SOUND, commands
from tests.fuzz.counted import recounted
from tests.fuzz.inputs import made
from tests.fuzz.judgement import judged
from tests.fuzz.readers import READERS, refused
from tests.fuzz.requests import ADDRESSES, BODIES, RECORDS
from tests.fuzz.running import SHARES, fuzzer, limited, short, watched

MANY = int(
    os.environ.get("DISCREET_FUZZ", "20000")
)  # inputs of the long run; some 0.04 s of the processor each
REFUSED = {"infer weighted", "infer estimate"}  # of releases of another kind than the sound one
QUICK = {name for name, (_, often) in SOUND.items() if often >= 5}
QUICKLY = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the sound inputs are prepared once."""
    return tmp_path_factory.mktemp("fuzz")


def test_some_damaged_inputs_end_with_a_message(folder: Path) -> None:
    found = short(120, 1, folder)
    assert found.faults == {}
    assert set(found.inputs) == set(SHARES)


@pytest.mark.long
def test_many_damaged_inputs_end_with_a_message(tmp_path: Path) -> None:
    found = watched(MANY, 2, tmp_path)
    assert sum(found.inputs.values()) == MANY
    assert found.faults == {}
    assert found.codes["option 2"] > found.inputs["option"] / 4
    assert found.codes["reader 2"] > found.inputs["reader"] / 4


def _raises(*_: object, **__: object) -> Iterator[object]:
    raise TypeError("of the program")


def _never_ends(*_: object, **__: object) -> Iterator[object]:
    while True:
        pass


def _shows_the_secret(error: Exception) -> str:
    return f"{error} {Path('secret').read_text(encoding='utf-8')}"


def _shows_an_id(error: Exception) -> str:
    return f"{error} (person {town.persons()['pid'][5]})"


@pytest.mark.parametrize(
    ("place", "planted", "found"),
    [
        ("discreet.programme.codelist._shape_problems", _raises, "TypeError in codelist.py"),
        ("discreet.programme.codelist._shape_problems", _never_ends, "Stands in"),
        ("discreet.cli.app._explained", _shows_the_secret, "a secret is shown"),
        ("discreet.cli.app._explained", _shows_an_id, "an id of a record is shown"),
        ("discreet.cli.app._explained", lambda _: "", "2 without a message"),
    ],
)
def test_a_planted_fault_is_found(
    place: str, planted: object, found: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fuzzer itself: what is wrong in the program is reported, with the input that led to it."""
    faults = set()
    with fuzzer(1, folder) as one:
        monkeypatch.setattr(place, planted)
        monkeypatch.setattr("tests.fuzz.running.HANGS", 1)
        for number in range(200):
            with limited():
                faults.add(str(one.run(number)["fault"]))
            if any(found in fault for fault in faults):
                return
    raise AssertionError(faults)


def test_a_wrong_count_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(mechanism: CellKeyMechanism, table: ConfidentialTable) -> ProtectedTable:
        right = publish(mechanism, table)
        last = right.cells == right.cells[-1]
        weighted = None if right.weighted is None else right.weighted + last
        return replace(right, values=right.values + last, weighted=weighted)

    publish = CellKeyMechanism.perturb
    dice = random.Random(3)
    with fuzzer(1, folder) as one:
        assert recounted(Path("counted"), dice, []) == ""
        one.restore()
        monkeypatch.setattr(CellKeyMechanism, "perturb", one_more)
        assert "should be" in recounted(Path("counted"), dice, [])
        one.restore()


def test_every_command_is_tried_and_its_call_is_sound(folder: Path) -> None:
    assert set(commands()) == set(SOUND)
    assert {name for name, options in commands().items() if not options} == {"token revoke"}
    with fuzzer(1, folder) as one:
        for name in sorted(QUICK):
            code, text = made(SOUND[name][0].split())
            one.restore()
            assert code == (2 if name in REFUSED else 0), (name, text)
        assert set(READ) <= set(one.sound)
        assert {name for name, _, _ in READERS} <= set(one.sound)


def test_what_is_damaged_is_sound_before(folder: Path) -> None:
    """A command or a request that is refused anyway reaches nothing."""
    slow = ("attack ", "utility ", "risk differencing ", "infer independence ", "swap ")
    with fuzzer(1, folder) as one:
        for call in sorted({call for calls in READ.values() for call in calls}):
            if not call.startswith(slow):
                code, text = made(call.split())
                one.restore()
                assert code == 0, (call, text)
        for name, _, read in READERS:
            assert not refused(read, Path(name)), name
            one.restore()
        for client, bodies in ((one.released, BODIES), (one.records, RECORDS)):
            for address, body in bodies:
                answer = client.send("POST", address, json=body)
                assert answer.is_success, (address, answer.text)
        for address in ADDRESSES:
            answer = one.released.send("GET", address)
            assert answer.is_success, (address, answer.text)
        assert judged() == 0


def test_files_inside_folders_are_removed_too(folder: Path) -> None:
    """A register beside the town's secret would refuse every later programme."""
    with fuzzer(1, folder) as one:
        code, text = made(
            ["protect", "town/programme.toml", "--secret", "town/secret.key", "--out", "town/made"]
        )
        assert code == 0, text
        assert Path("town/secret.key.register").is_file()
        one.restore()
        assert sorted(map(str, Path("town").iterdir())) == sorted(
            name for name in one.sound if name.startswith("town/")
        )


def test_two_judgements_are_found_where_there_are_two(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.pipeline.check.check_data", lambda *_, **__: ())
    with fuzzer(1, folder) as one:
        persons = town.persons()
        persons["sex"][0] = "x"
        town.rewrite(Path("town"), persons=persons)
        assert "check 0, protect 2" in str(judged())
        one.restore()


def _damaged_page(content: bytes) -> bytes:
    return content[:30] + b"\xff" * 20 + content[50:]


def _axis_twice(content: bytes) -> bytes:
    found = json.loads(content)
    found["cubes"][0]["axes"].append(found["cubes"][0]["axes"][0])
    return json.dumps(found).encode()


FOUND: tuple[
    tuple[str, Callable[[bytes], bytes]], ...
] = (  # files that were faults once: how each is spoiled
    ("release/parquet/1.parquet", _damaged_page),
    ("tree/estimates/1.parquet", _damaged_page),
    ("tree/measurements/H/detailed.parquet", _damaged_page),
    ("tree/hierarchy/categories.csv", lambda text: text.replace(b"SEX,M,SEX,M", b"SEX,M,SEEX,M")),
    ("tree/manifest.json", lambda text: re.sub(rb'"cells": \d+', b'"cells": ' + b"9" * 30, text)),
    ("tree/manifest.json", _axis_twice),
    ("lau.json", lambda text: text.replace(b'"CL_LAU"', b"0")),
    ("lau.json", lambda text: text.replace(b'"A1"', b"[]")),
    ("lau.json", lambda _: b"[" * 100_000),
    ("structures.xml", lambda text: text.replace(b"UTF-8", b"UTF-2147483648", 1)),
    ("saved.sqlite", lambda content: content.replace(b'"axes"', b"[axes]")),
    ("programme.toml", lambda text: text.replace(b'["lau"]', b'["lau", "lau"]')),
)


@pytest.mark.parametrize("number", few(range(len(FOUND)), 0, 5, 10))
def test_what_was_a_fault_is_refused(number: int, folder: Path) -> None:
    name, spoil = FOUND[number]
    reads = [read for one, _, read in READERS if one == name]
    with fuzzer(1, folder) as one:
        content = spoil(one.sound[name])
        assert content != one.sound[name]
        for read in reads:
            Path(name).write_bytes(content)
            assert made(["check", name])[0] == 2 if name.endswith(".toml") else refused(read, Path(name))
            one.restore()


def test_positions_beyond_all_tables_are_answered(folder: Path) -> None:
    layout = {"columns": ["SEX"], "lines": [10**30]}
    with fuzzer(1, folder) as one:
        body = {"query": {"axes": ["SEX", "LAU.H"]}, "layout": layout}
        assert one.released.send("POST", "/api/v1/files", json=body).status_code == 400


HEADERS = ("i,j,p,p_int_ub", "pcv,ckey,pvalue", "cell_value,cell_key,perturbation", "0,1,-1")
CELLS = st.one_of(
    st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(("0-255", "1e400", "-0", "٣"))
)


@QUICKLY
@given(header=st.sampled_from(HEADERS), rows=st.lists(st.lists(CELLS, min_size=3, max_size=4), max_size=6))
def test_any_p_table_file_is_read_or_refused(tmp_path: Path, header: str, rows: list[list[object]]) -> None:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "p.csv").write_text("\n".join(lines), encoding="utf-8", errors="replace")
    with contextlib.suppress(Mistakes):
        read_ptable(tmp_path / "p.csv")


@QUICKLY
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    for read in (read_ptable, read_codes, read_geometry):
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
