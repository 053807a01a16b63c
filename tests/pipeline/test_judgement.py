"""``check`` and ``protect`` give one judgement: what one refuses, the other refuses in the same lines."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from discreet.cli.app import main
from tests.cases import few
from tests.cli import town

PRIVATE = """[noise]
kind = "geometric"
epsilon = 4
allow_weak = true
"""
OF = [
    ("[variables.GEO]\n", '[variables.GEO]\nof = "dwelling"\nfixed = true\n'),
    ("[variables.SEX]\n", '[variables.SEX]\nof = "person"\n'),
    ("[variables.AGE]\n", '[variables.AGE]\nof = "person"\n'),
    ("[variables.TENURE]\n", '[variables.TENURE]\nof = "household"\nfixed = true\n'),
    ('weight = "weight"\n', ""),
    ('count = "works"\n', ""),
]
SWAP = '[swap]\nk = 2\nrisk = ["AGE", "SEX"]\nsimilar = [[{ composition = ["SEX"] }]]\nrate = 0.1\n'
CELL_KEY = '[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n'
RECONSTRUCT = "[gates]\nreconstruction = {{ {} }}\n"

Change = Callable[[Path], None]


def changed(*changes: tuple[str, str]) -> Change:
    return lambda folder: town.edit(folder, *changes)


def added(text: str) -> Change:
    return changed(("[noise]", f"{text}[noise]"))


def private(*changes: tuple[str, str]) -> Change:
    """The town with a guarantee, and then something wrong."""
    return lambda folder: town.edit(folder, *OF, (CELL_KEY, PRIVATE), *changes)


def people(name: str, values: Callable[[list[Any]], list[Any]]) -> Change:
    table = town.persons()
    return lambda folder: void(town.rewrite(folder, persons={**table, name: values(table[name])}))


def void(_: object) -> None:
    return None


def in_turn(*changes: Change) -> Change:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def without_homes(folder: Path) -> None:
    """No cube counts households."""
    town.edit(folder, ('[[cubes]]\nid = "homes"\nunit = "households"\naxes = ["GEO.H", "TENURE"]\n', ""))


WRONG: dict[str, tuple[Change, str]] = {
    "weak noise": (changed(("V = 2.0", "V = 0.01")), "use more noise"),
    "an infeasible p-table": (changed(("D = 5", "D = 5\njs = 60")), "js = 60"),
    "a huge k": (added(SWAP.replace("k = 2", f"k = {2**63}")), "swap.k"),
    "a huge rounding": (private(("epsilon = 4", f"epsilon = 4\nrounding = {2**63}")), "noise.rounding"),
    "a huge threshold": (private(("epsilon = 4", f"epsilon = 4\nthreshold = {2**63}")), "noise.threshold"),
    "a huge total": (
        private(("epsilon = 4", f"epsilon = 4\npublic_totals = {{ persons = {2**63} }}")),
        "noise.public_totals.persons",
    ),
    "a place that no variable is": (added('[serve]\nplace = "NONE"\n'), "serve.place: unknown name 'NONE'"),
    "a column of places twice": (
        changed(('["region", "town"]', '["town", "town"]')),
        "population.geography: column 'town' occurs 2 times",
    ),
    "a gate of what is not reconstructed": (
        added(RECONSTRUCT.format('variables = ["SEX"], quasi = ["AGE"]')),
        "gates.reconstruction.quasi: AGE; choose from SEX",
    ),
    "a gate of errors of what no one knows": (
        added(RECONSTRUCT.format('quasi = ["SEX"], errors = { AGE = 0.1 }')),
        "gates.reconstruction.errors: AGE = 0.1",
    ),
    "a gate of the place as a variable": (
        added(RECONSTRUCT.format('variables = ["GEO", "SEX"]')),
        "gates.reconstruction.variables: GEO is the place",
    ),
    "a gate of a place that no table of persons has": (
        added(RECONSTRUCT.format('place = "TENURE"')),
        "gates.reconstruction.place: no table of all persons has 'TENURE'",
    ),
    "a gate of variables that no table has with the place": (
        added(RECONSTRUCT.format('variables = ["TENURE"]')),
        "gates.reconstruction.variables: TENURE; no table has it with GEO",
    ),
    "a gate of households' places": (
        added('[gates]\ndifferencing = { pairs = [["GEO", "TENURE"]] }\n'),
        "gates.differencing.pairs: TENURE is a variable of households",
    ),
    "corrections beside a guarantee": (
        private(("[noise]", "[gates]\ncorrections = 0\n[noise]")),
        "gates.corrections: looks at the data beside a privacy guarantee",
    ),
    "a snapshot of a query": (
        private(
            ('persons = "persons.parquet"', "persons = { query = \"SELECT * FROM 'persons.parquet'\" }"),
            ("epsilon = 4", 'epsilon = 4\nsnapshot = "a"'),
        ),
        "noise.snapshot: a snapshot of records that are not in files",
    ),
    "noise that fills too many cells": (
        private(("epsilon = 4", "epsilon = 0.01"), ("[noise]", "[limits]\npublished = 10\n[noise]")),
        "limits.published allows 10",
    ),
    "too many cells that add up": (
        private(("[noise]", "[limits]\npublished = 10\n[release]\nconsistent = true\n[noise]")),
        "cells that each need a noisy count",
    ),
    "households that are too large": (
        private(("epsilon = 4", 'epsilon = 4\nprotects = "household"\nlargest_household = 1')),
        "noise.largest_household: 1 is too small",
    ),
    "a declared delta that is too small": (
        private(('"geometric"', '"laplace"'), ("epsilon = 4", "epsilon = 4\nbound = 3\ndelta = 1e-30")),
        "truncation at 3 costs",
    ),
    "a column to carry that is not there": (
        added(SWAP + 'carry = ["grid"]\n'),
        "swap.carry: unknown column 'grid'",
    ),
    "a household in two places that is swapped": (
        in_turn(added(SWAP), people("town", lambda column: ["N2", *column[1:]])),
        "population.geography: ",
    ),
    "a geography that does not nest": (
        people("region", lambda column: ["S", *column[1:]]),
        "town 'N1' is in region 'N' and in 'S'",
    ),
    "ids in the place of regions": (
        people("region", lambda _: [str(home) for home in [*town.persons()["hid"][1:], 1]]),
        "town 'N1' is in two values of region",
    ),
    "few regions that do not nest": (
        people("region", lambda column: [f"h{number // 40}" for number in range(len(column))]),
        "town 'N1' is in region 'h0' and in 'h1'",
    ),
    "ids in the place of towns that are swapped": (
        in_turn(added(SWAP), people("town", lambda _: [str(home) for home in [*town.persons()["hid"][1:], 1]])),
        "a value of town is in region ",
    ),
    "the ids of households as places": (
        changed(('["region", "town"]', '["hid", "town"]')),
        "population.geography: column 'hid' identifies the households; name columns of places only",
    ),
    "a table of a cluster that no cube counts": (
        in_turn(without_homes, changed(('"households.parquet"', '{ table = "x" }'))),
        "only Spark can read it",
    ),
    "the same, without places": (
        in_turn(
            without_homes,
            changed(('"households.parquet"', '{ table = "x" }'), ('geography = ["region", "town"]\n', "")),
        ),
        "only Spark can read it",
    ),
    "the same, and a mistake in the programme": (
        in_turn(
            without_homes,
            changed(
                ('"households.parquet"', '{ table = "x" }'),
                ('geography = ["region", "town"]\n', ""),
                ('axes = ["GEO.L", "SEX"]', 'axes = ["GEO.L", "SEX"]\nbase = "nothing"'),
            ),
        ),
        "'nothing' in a filter",
    ),
    "a person without a region": (
        people("region", lambda column: [None, *column[1:]]),
        "some records have no place",
    ),
    "places that are nested values": (
        people("town", lambda column: [[code] for code in column]),
        "column town: values of type list<element: string>; give codes as text or numbers",
    ),
    "a code of a million characters": (people("sex", lambda column: ["x" * 10**6, *column[1:]]), "xxx'; add them"),
    "a code that no codelist has": (people("sex", lambda column: ["x", *column[1:]]), "'x'"),
    "a column of labels that is a variable": (
        changed(("[variables.SEX]\n", '[variables.AGE_label]\ncolumn = "sex"\ncodelist = "sex.csv"\n[variables.SEX]\n'),
                ('axes = ["GEO.H", "SEX", "AGE"]', 'axes = ["GEO.H", "AGE_label", "AGE"]')),
        "rename a variable",
    ),
    "a variable that SDMX needs itself": (
        changed(
            ("[variables.SEX]\n", '[variables.OBS_VALUE]\ncolumn = "sex"\ncodelist = "sex.csv"\n[variables.SEX]\n'),
            ('axes = ["GEO.H", "SEX", "AGE"]', 'axes = ["GEO.H", "OBS_VALUE", "AGE"]'),
            ("[noise]", '[release]\nformats = ["sdmx-csv"]\n[noise]'),
        ),
        "SDMX needs the id OBS_VALUE itself",
    ),
    "no records": (lambda folder: void(town.rewrite(folder, persons={k: [] for k in town.persons()})), "no records"),
}  # fmt: skip


class Office:
    """The town and the two commands, with the same options."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder, self._capsys, self._monkeypatch = town.build(folder), capsys, monkeypatch
        monkeypatch.chdir(folder)

    def call(self, *words: str) -> tuple[int, list[str]]:
        self._monkeypatch.setattr("sys.argv", ["discreet", *words])
        self._capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = self._capsys.readouterr()
        return code, (said.err + said.out).splitlines()

    def check(self, *words: str) -> tuple[int, list[str]]:
        return self.call("check", "programme.toml", *words, "--threads", "1")

    def protect(self, *words: str) -> tuple[int, list[str]]:
        given = ("--out", "release") if "--out" not in words else ()
        return self.call(
            "protect", "programme.toml", "--secret", "secret.key", *given, *words, "--threads", "1", "--quiet"
        )

    def refused_alike(self, says: str, *words: str) -> None:
        """Both commands refuse, protect in lines that check has too, and neither writes anything."""
        before = sorted(path.name for path in self.folder.rglob("*"))
        checked, found = self.check(*(("--secret", "secret.key", *words) if words else ()))
        protected, refusal = self.protect(*words)
        assert (checked, protected) == (2, 2), (found, refusal)
        assert any(says in line for line in found), found
        assert set(refusal) <= set(found)
        assert sorted(path.name for path in self.folder.rglob("*")) == before


@pytest.fixture
def office(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Office:
    return Office(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("case", few(WRONG, *(WRONG.keys() - {"noise that fills too many cells"})))
def test_both_refuse_in_the_same_lines(office: Office, case: str) -> None:
    change, says = WRONG[case]
    change(office.folder)
    office.refused_alike(says)


@pytest.mark.parametrize(
    "change",
    [
        changed(),
        private(),
        private(("epsilon = 4", 'epsilon = 4\nprotects = "household"\nlargest_household = 2')),
        added(RECONSTRUCT.format('variables = ["SEX", "AGE"], quasi = ["SEX"], areas = 2, seconds = 1')),
        added(SWAP),
    ],
    ids=["cell keys", "a guarantee", "households", "a gate", "swapping"],
)
def test_both_accept(office: Office, change: Change) -> None:
    change(office.folder)
    code, said = office.check("--secret", "secret.key", "--out", "release")
    assert (code, said[0]) == (0, "programme.toml: no mistakes. 3 cubes.")
    assert office.protect()[0] == 0


@pytest.fixture(params=["ordered", "reversed", "apart"])
def order(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Sort persons: by household, from the last, or the first person at the end, apart from the rest."""

    def sort(path: Path) -> None:
        table = pq.read_table(path)
        places = {"ordered": range(len(table)), "reversed": range(len(table))[::-1]}
        pq.write_table(table.take([*places.get(request.param, [*range(1, len(table)), 0])]), path)

    return sort


def test_a_household_in_two_places_is_a_warning_where_nothing_is_swapped(
    office: Office, order: Callable[[Path], None]
) -> None:
    people("town", lambda column: ["N2", *column[1:]])(office.folder)
    order(office.folder / "persons.parquet")
    code, said = office.check()
    assert (code, len(said)) == (0, 3)
    assert "Not refused, because nothing is swapped: " in said[1]
    assert "a household is in two places of 'town'; give all its members the same geography" in said[1]
    code, published = office.protect()
    assert code == 0
    assert f"Note: {said[1]}" in published


def test_households_in_one_place_each_are_no_warning(office: Office, order: Callable[[Path], None]) -> None:
    order(office.folder / "persons.parquet")
    for code, said in (office.check(), office.protect()):
        assert code == 0
        assert not any("two places" in line for line in said)


def register(folder: Path) -> None:
    (folder / "secret.key.register").write_text("{}")
    (folder / "secret.key.register").chmod(0o600)


def test_a_damaged_register(office: Office) -> None:
    register(office.folder)
    office.refused_alike("is damaged, or not a register", "--out", "release")


def test_another_ptable_under_the_secret(office: Office) -> None:
    assert office.protect("--out", "first")[0] == 0
    town.edit(office.folder, ("V = 2.0", "V = 3.0"))
    office.refused_alike("another one, or other keys, under this secret", "--out", "release")
    assert office.check("--secret", "secret.key", "--out", "release", "--another-ptable")[0] == 0


def test_a_snapshot_of_other_data(office: Office) -> None:
    private(("epsilon = 4", 'epsilon = 4\nsnapshot = "2021"'))(office.folder)
    assert office.protect("--out", "first")[0] == 0
    table = town.persons()
    town.rewrite(office.folder, persons={**table, "sex": table["sex"][::-1]})
    office.refused_alike("bound to other contents of persons", "--out", "release")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--out", "persons.parquet"), "release folder: is a file"),
        (("--out", "other"), "exists and is not a release of Discreet"),
        (("--out", "new", "--private-manifest", "new/p.json"), "is inside the release"),
        (("--out", "new", "--register", "new"), "register: is inside the release"),
        (("--out", "new", "--register", "new/secret.register"), "register: is inside the release"),
        (("--out", "new", "--earlier", "other"), "give the folder of a release"),
        (("--out", "new", "--ledger", "l.db"), "a ledger without an account"),
        (("--out", "new", "--ledger", "no.db", "--account", "a"), "no such file"),
    ],
)
def test_places_and_options(office: Office, words: tuple[str, ...], says: str) -> None:
    (office.folder / "other").mkdir()
    (office.folder / "other/file").write_text("x")
    office.refused_alike(says, *words)


def test_an_account_that_cannot_pay(office: Office) -> None:
    private()(office.folder)
    assert office.call("ledger", "create", "l.db", "--secret", "secret.key")[0] == 0
    for name, amount in (("poor", "--epsilon=3"), ("other", "--rho=1"), ("rich", "--epsilon=4")):
        assert office.call("ledger", "account", "l.db", name, amount, "--secret", "secret.key")[0] == 0
    ledger = ("--out", "release", "--ledger", "l.db", "--account")
    office.refused_alike("epsilon 4 would exceed the budget of epsilon 3", *ledger, "poor")
    office.refused_alike("account 'other' has a rho", *ledger, "other")
    office.refused_alike("no such account", *ledger, "nobody")
    code, said = office.check("--secret", "secret.key", *ledger, "rich")
    assert (code, said[1]) == (
        0,
        "Account rich can pay for the release: it costs epsilon 4, epsilon 4 is left.",
    )
    _, shown = office.call("ledger", "show", "l.db", "--secret", "secret.key", "--json")
    assert all(account["charges"] == [] for account in json.loads(shown[0])["accounts"]), (
        "check charges nothing"
    )


def test_a_ledger_that_was_changed_pays_for_nothing(office: Office) -> None:
    private()(office.folder)
    assert office.call("ledger", "create", "l.db", "--secret", "secret.key")[0] == 0
    for name in ("ours", "others"):
        assert office.call("ledger", "account", "l.db", name, "--epsilon=9", "--secret", "secret.key")[0] == 0
    for budget in ("10", "11", "12"):
        words = (
            "raise",
            "l.db",
            "ours",
            "--epsilon",
            budget,
            "--reason",
            "decided",
            "--secret",
            "secret.key",
        )
        assert office.call("ledger", *words)[0] == 0
    with closing(sqlite3.connect("l.db")) as database:
        database.execute("DROP TRIGGER ledger_entries_no_update")
        database.execute("UPDATE ledger_entries SET described = 'x' WHERE number = 1")
        database.commit()
    code, said = office.call("ledger", "verify", "l.db", "--secret", "secret.key")
    assert (code, len(said)) == (1, 1)
    for account in ("ours", "others"):
        office.refused_alike(
            "account ours, entry 1: it was changed", "--ledger", "l.db", "--account", account
        )


def test_a_line_with_too_many_fields(office: Office) -> None:
    table = town.persons()
    rows = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    (office.folder / "persons.csv").write_text(
        "\n".join([",".join(table), *rows[:5], f"{rows[5]},1,2", *rows[6:]])
    )
    town.edit(office.folder, ("persons.parquet", "persons.csv"))
    office.refused_alike("record 6 has 10 fields instead of 8")


def test_everything_wrong_is_reported_at_once(office: Office) -> None:
    register(office.folder)
    town.edit(office.folder, ("V = 2.0", "V = 0.01"))
    code, said = office.protect("--out", "persons.parquet")
    assert code == 2
    assert len(said) == 3
    checked, found = office.check("--secret", "secret.key", "--out", "persons.parquet")
    assert (checked, set(found)) == (2, set(said))


def test_options_of_a_release_need_a_secret(office: Office) -> None:
    code, (line,) = office.check("--out", "release")
    assert (code, "--secret: is missing" in line) == (2, True)


def test_a_release_that_is_replaced_is_named(office: Office) -> None:
    assert office.protect()[0] == 0
    _, said = office.check("--secret", "secret.key", "--out", "release")
    assert "Published before: release. protect compares both" in said[-1]
    manifest = office.folder / "release/manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": ', '"format_version": 99'))
    office.refused_alike("cannot be compared", "--out", "release")


@pytest.mark.parametrize("column", ["pid", "hid", "region", "town", "sex", "age", "works", "weight"])
def test_damaged_pages_of_any_column_are_judged_alike(office: Office, column: str) -> None:
    """Pages of columns that nothing counts are read by neither command."""
    path = office.folder / "persons.parquet"
    table = pq.read_metadata(path)
    (found,) = (
        chunk
        for chunk in (table.row_group(0).column(at) for at in range(table.num_columns))
        if chunk.path_in_schema == column
    )
    start = found.dictionary_page_offset or found.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + found.total_compressed_size] = bytes(found.total_compressed_size)
    path.write_bytes(content)
    code, said = office.check()
    assert code == office.protect()[0]
    if code:
        assert "a damaged Parquet file" in said[0]


def test_a_damaged_column_of_a_rule_that_no_cube_needs_is_a_warning(office: Office) -> None:
    changed(('axes = ["GEO.H", "SEX", "AGE"]', 'axes = ["GEO.H", "SEX"]'))(office.folder)
    people("age", lambda column: ["none of these", *column[1:]])(office.folder)
    code, said = office.check()
    assert code == 0
    (warning,) = (line for line in said if "Not refused, because no cube counts it: " in line)
    code, published = office.protect()
    assert code == 0
    assert f"Note: {warning}" in published
