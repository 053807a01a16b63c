"""Pairs of releases under one secret: noise is repeated only where the same thing is counted, and is paid for first."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BudgetExceeded, Mistakes
from discreet.io.register import Register
from discreet.maths.cells.keys import derive
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours, PrivacyLoss
from discreet.perturb.ledger import Entry, Ledger
from discreet.perturb.private import PrivateMechanism
from discreet.pipeline import protect as pipeline
from discreet.pipeline.protect import Protected, protect
from discreet.pipeline.spending import Spending
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.run.identity import digest_inputs
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable
from tests.cases import few
from tests.pipeline.conftest import NOON, SECRET, contents

PERSONS, PLACES = 3000, 60
AGES = {"young": range(15), "adult": range(15, 65), "old": range(65, 91)}  # nobody is 90


def age_list(groups: Mapping[str, range]) -> str:
    rows = [f"{group},,\n" for group in groups]
    rows += [f"{age},{group},\n" for group, ages in groups.items() for age in ages]
    return "code,parent,label\n" + "".join(rows)


def place_list(order: list[int]) -> str:
    """Places in four regions; the order is that of the file."""
    rows = [f"R{n},,\n" for n in range(4)] + [f"p{n},R{n % 4},\n" for n in order]
    return "code,parent,label\n" + "".join(rows)


@dataclass(frozen=True)
class Office:
    """A population, its programme and all that is private; ``changed`` gives an office that differs in some of it."""

    folder: Path
    codelists: Mapping[str, str] = field(
        default_factory=lambda: {
            "age.csv": age_list(AGES),
            "geo.csv": place_list(list(range(PLACES))),
            "sex.csv": "code,parent,label\nf,,\nm,,\n",
        }
    )
    age: str = "age"
    coding: str = ""  # what the values of the column mean
    cube: str = 'axes = ["GEO", "AGE"]'
    noise: str = 'snapshot = "2021"'
    more: str = ""
    title: str = "One"

    def declare(self) -> Path:
        for name, text in self.codelists.items():
            (self.folder / name).write_text(text)
        path = self.folder / "programme.toml"
        own = 'of = "person"\n'
        path.write_text(
            f'[population]\npersons = "persons.parquet"\nperson_id = "pid"\n'
            f'[variables.AGE]\n{own}column = "{self.age}"\ncodelist = "age.csv"\n{self.coding}\n'
            "[variables.AGE.breakdowns]\nAGE = 1\n"
            f'[variables.GEO]\n{own}codelist = "geo.csv"\n[variables.SEX]\n{own}codelist = "sex.csv"\n'
            f'[[cubes]]\nid = "c"\ntitle = "{self.title}"\n{self.cube}\n'
            f'{self.more}\n[noise]\nkind = "geometric"\nepsilon = 1\nnegatives = "keep"\n{self.noise}\n'
        )
        return path

    @property
    def register(self) -> Register:
        return Register.of(self.folder / "secret.register", SECRET)

    @property
    def ledger(self) -> Ledger:
        found = Ledger.create(self.folder / "ledger.sqlite", lambda: NOON)
        found.create_account(
            "a", EpsilonDelta(Fraction(2), Fraction(1, 10**9)), Neighbours.ADD_REMOVE, "person"
        )
        return found

    @property
    def spent(self) -> Fraction:
        loss = self.ledger.spent("a")
        assert isinstance(loss, EpsilonDelta)
        return loss.epsilon

    def publish(self, name: str) -> Protected:
        return protect(
            load_programme(self.declare()),
            SECRET,
            self.folder / name,
            self.folder / f"{name}.json",
            clock=lambda: NOON,
            spending=Spending(self.ledger, "a"),
            register=self.register,
        )

    def values(self, name: str) -> dict[tuple[str, str], int]:
        table = open_release(self.folder / name).read_cube("c").to_pylist()
        return {(row["GEO"], row["AGE"]): row["value"] for row in table}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    write_persons(tmp_path, PERSONS)
    return Office(tmp_path)


def write_persons(folder: Path, number: int) -> None:
    rng = np.random.default_rng(5)
    columns = {
        "pid": np.arange(PERSONS),
        "geo": np.char.add("p", rng.integers(0, PLACES, PERSONS).astype(str)),
        "age": rng.integers(0, 90, PERSONS).astype(str),
        "sex": rng.choice(["f", "m"], PERSONS),
    }
    columns["other_age"] = np.roll(columns["age"], 1)
    pq.write_table(pa.table(columns).slice(0, number), folder / "persons.parquet")


YOUNGER = {"young": range(18), "adult": range(18, 65), "old": range(65, 91)}
MOVED = place_list(list(range(PLACES))).replace("p7,R3", "p7,R0")
CHANGES: dict[str, dict[str, object]] = {
    "age groups with other limits": {"codelists": {"age.csv": age_list(YOUNGER)}},
    "an unused code more": {"codelists": {"geo.csv": place_list([999, *range(PLACES)])}},
    "an unused code at the end": {"codelists": {"geo.csv": place_list([*range(PLACES), 999])}},
    "another order": {"codelists": {"geo.csv": place_list(list(range(PLACES))[::-1])}},
    "a code under another parent": {"codelists": {"geo.csv": MOVED}},
    "another column": {"age": "other_age"},
    "a population base": {"cube": 'axes = ["GEO", "AGE"]\nbase = \'SEX == "f"\''},
    "a structural zero": {"more": '[[structural_zeros]]\nwhere = \'AGE == "90"\''},
    "another threshold": {"noise": 'snapshot = "2021"\nthreshold = 4'},
    "another snapshot": {"noise": 'snapshot = "2022"'},
    "no snapshot": {"noise": ""},
}  # fmt: skip


def changed(office: Office, **changes: object) -> Office:
    """The same office with some codelists or declarations replaced."""
    lists = changes.pop("codelists", {})
    assert isinstance(lists, dict)
    return replace(office, codelists={**office.codelists, **lists}, **changes)  # type: ignore[arg-type]


def noise_of(office: Office, name: str) -> dict[tuple[str, str], int]:
    """Published minus true counts, counted here from the records, for the finest cells that are published."""
    persons = pq.read_table(office.folder / "persons.parquet").to_pylist()
    base = "base" in office.cube
    group: dict[str, str] = {}
    for line in office.codelists["age.csv"].splitlines()[1:]:
        code, parent, _ = line.split(",")
        group[code] = parent or code
    true: dict[tuple[str, str], int] = {}
    for person in persons:
        if not base or person["sex"] == "f":
            cell = (person["geo"], group[person[office.age]])
            true[cell] = true.get(cell, 0) + 1
    values = office.values(name)
    return {cell: values[cell] - count for cell, count in true.items() if cell in values}


@pytest.mark.parametrize(
    "name", few(CHANGES, "another column", "an unused code more", "no snapshot", "a population base")
)
def test_what_is_counted_decides_the_noise_and_not_its_name(office: Office, name: str) -> None:
    """Everything keeps its name here; if noise were repeated, the difference of the releases would be exact."""
    other = changed(office, **CHANGES[name])
    office.publish("one")
    other.publish("two")
    first, second = noise_of(office, "one"), noise_of(other, "two")
    both = first.keys() & second.keys()
    assert len(both) > 60
    same = sum(first[cell] == second[cell] for cell in both) / len(both)
    assert same < 0.25, "noise of 1/12 for each cell: one in 24 by chance"
    number = zip(sorted(first.values()), sorted(second.values()), strict=False)
    assert any(a != b for a, b in number), "nor the same words for other cells"
    assert office.spent == 2


def test_what_does_not_change_a_count_repeats_the_noise_and_costs_nothing(office: Office) -> None:
    office.publish("one")
    values = office.values("one")
    changed(office, title="Another title").publish("two")
    labelled = {"geo.csv": office.codelists["geo.csv"].replace("R1,,", "R1,,North")}
    changed(office, codelists=labelled).publish("three")
    assert office.values("two") == office.values("three") == values
    assert office.spent == 1


def test_ready_made_counts_of_two_files_are_two_statistics(office: Office) -> None:
    """Same axes, other counts: if they shared a signature, their noise would cancel and one would be free."""
    rng = np.random.default_rng(3)
    cells = pa.table({"SEX": ["f", "m"] * 3, "GEO": [f"p{n}" for n in (0, 0, 1, 1, 2, 2)]})
    counts = {}
    for name in ("first", "second"):
        counts[name] = rng.integers(50, 90, 6)
        made = cells.append_column("count", pa.array(counts[name])).append_column(
            "key", pa.array(rng.integers(0, 2**32, 6))
        )
        pq.write_table(made, office.folder / f"{name}.parquet")
    declared = "".join(
        f'[[cubes]]\nid = "{cube}"\naxes = ["GEO", "SEX"]\ncounts = {{ file = "{file}.parquet" }}\n'
        for cube, file in (("x", "first"), ("y", "second"), ("z", "first"))
    )
    changed(office, cube='axes = ["SEX"]\n' + declared).publish("r")
    release = open_release(office.folder / "r")
    found = {
        cube: {(row["GEO"], row["SEX"]): row["value"] for row in release.read_cube(cube).to_pylist()}
        for cube in "xyz"
    }
    assert found["x"] == found["z"], "the same file is the same statistic"
    assert [entry.source for entry in release.manifest.cubes] == ["", "x", "y", "x"]
    codes = list(zip(cells["GEO"].to_pylist(), cells["SEX"].to_pylist(), strict=True))
    differences = [found["x"].get(code, 0) - found["y"].get(code, 0) for code in codes]
    assert differences != (counts["first"] - counts["second"]).tolist()
    budget = release.noise.budget
    assert budget is not None
    assert budget.cross_tabulations == 2 + 2 * 6, "SEX and its total, and all of both files"


def test_data_that_change_under_one_snapshot_are_refused(office: Office) -> None:
    office.publish("one")
    before = contents(office.folder / "one")
    write_persons(office.folder, PERSONS - 1)
    with pytest.raises(Mistakes, match=r"bound to other contents of persons; restore the data"):
        office.publish("one")
    assert contents(office.folder / "one") == before
    assert office.spent == 1
    assert list(office.folder.glob(".one*")) == []


def test_whether_data_have_changed_does_not_show(office: Office) -> None:
    """Two manifests of the same records and two of neighbours look alike: nothing in them is equal by equal data."""
    fresh = changed(office, noise="")
    digests = []
    for name in ("one", "two"):
        fresh.publish(name)
        digests.append(open_release(office.folder / name).manifest.digests)
    assert digests[0].inputs != digests[1].inputs
    assert digests[0].salt != digests[1].salt
    assert fresh.values("one") != fresh.values("two")


def test_the_secret_the_data_and_the_release_do_not_give_the_noise(office: Office) -> None:
    """The seed in the register is needed as well: another register is other noise, under the same secret and data."""
    office.publish("one")
    first = office.values("one")
    seed = office.register.snapshot("2021", digest_inputs(load_programme(office.declare()), SECRET)).seed
    digests = open_release(office.folder / "one").manifest.digests
    for known in (digests.inputs, digests.salt, digests.parameters):
        assert derive(SECRET, f"private-noise/{known}") != derive(SECRET, f"private-noise/{seed.hex()}")
    published = b"".join(contents(office.folder / "one").values()) + (office.folder / "one.json").read_bytes()
    assert seed.hex().encode() not in published
    office.register.path.unlink()
    office.publish("two")
    second = office.values("two")
    assert sum(first.get(cell) == second.get(cell) for cell in first) / len(first) < 0.25
    assert office.spent == 2, "other noise is paid for"


def test_a_killed_run_leaves_only_what_is_paid_for(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = changed(office, noise="")

    def killed(self: object, folder: object, made: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline._Protecting, "judged", killed)
        for run in (1, 2):
            with pytest.raises(KeyboardInterrupt):
                fresh.publish("r")
            assert fresh.spent == run, "drawn, so charged"
            left = list(office.folder.glob(".r.*"))
            assert len(left) == 1, "the next run removes what the one before left"
            assert left[0].stat().st_mode & 0o077 == 0
    with pytest.raises(BudgetExceeded):
        fresh.publish("r")
    assert list(office.folder.glob(".r.*")) == left, (
        "refused before it touches anything; what is left is paid for"
    )
    assert not (office.folder / "r").exists()


def test_no_noise_is_drawn_before_the_charge(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    perturb, charge = PrivateMechanism.perturb, Ledger.charge

    def drawn(chosen: PrivateMechanism, table: ConfidentialTable) -> ProtectedTable:
        steps.append("draw")
        return perturb(chosen, table)

    def charged(ledger: Ledger, account: str, loss: PrivacyLoss, key: str, described: str = "") -> Entry:
        steps.append("charge")
        return charge(ledger, account, loss, key, described)

    monkeypatch.setattr(PrivateMechanism, "perturb", drawn)
    monkeypatch.setattr(Ledger, "charge", charged)
    for n in range(3):
        with pytest.raises(BudgetExceeded) if n == 2 else monkeypatch.context():
            changed(office, noise="").publish(f"r{n}")
    assert steps == ["charge", "draw"] * 2, "the third is refused before a record is read"


def test_an_account_that_is_charged_by_another_run_meanwhile(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could be paid when the run began is refused when it is charged, and no noise is drawn."""
    steps: list[str] = []

    def meanwhile(*_: object) -> tuple[()]:
        office.ledger.charge("a", EpsilonDelta(Fraction(3, 2), Fraction(0)), "another run")
        return ()

    def drawn(chosen: PrivateMechanism, table: ConfidentialTable) -> ProtectedTable:
        steps.append("draw")
        raise AssertionError("drawn without a charge")

    monkeypatch.setattr(pipeline, "found_data_problems", meanwhile)
    monkeypatch.setattr(PrivateMechanism, "perturb", drawn)
    with pytest.raises(BudgetExceeded, match=r"of which epsilon 1\.5 is spent"):
        changed(office, noise="").publish("r")
    assert steps == []
    assert office.spent == Fraction(3, 2)
    assert not (office.folder / "r").exists()


def test_a_mistake_in_the_last_records_costs_nothing(office: Office) -> None:
    """Records of every unit are read before anything is charged, bound or drawn."""
    households = pa.table({"hid": [1, 2], "hsize": ["1", "nobody knows"]})
    pq.write_table(households, office.folder / "households.parquet")
    (office.folder / "size.csv").write_text("code,parent,label\n1,,\n2,,\n")
    text = office.declare().read_text()
    text = text.replace(
        'person_id = "pid"', 'person_id = "pid"\nhouseholds = "households.parquet"\nhousehold_id = "hid"'
    )
    more = '[variables.SIZE]\nof = "household"\ncolumn = "hsize"\ncodelist = "size.csv"\n'
    more += '[[cubes]]\nid = "h"\nunit = "households"\naxes = ["SIZE"]\n'
    office.declare().write_text(text.replace("[noise]", f"{more}[noise]"))
    with pytest.raises(Mistakes, match="nobody knows"):
        protect(
            load_programme(office.folder / "programme.toml"),
            SECRET,
            office.folder / "r",
            office.folder / "r.json",
            clock=lambda: NOON,
            spending=Spending(office.ledger, "a"),
            register=office.register,
        )
    assert office.spent == 0
    assert not office.register.path.exists()


def test_fresh_noise_that_nobody_counts_is_pointed_out(office: Office) -> None:
    """Two such releases add their losses; with a ledger, or a snapshot, they are charged or equal."""
    for noise, spending, noted in (("", None, True), ("", "a", False), (office.noise, None, False)):
        one = changed(office, noise=noise)
        done = protect(
            load_programme(one.declare()),
            SECRET,
            one.folder / "r",
            one.folder / "r.json",
            clock=lambda: NOON,
            spending=None if spending is None else Spending(one.ledger, spending),
            register=one.register,
        )
        assert (pipeline.UNCHARGED in done.notes) == noted


@pytest.mark.parametrize(
    "other",
    few(
        [
            'reference_day = "2021-05-10"\nmissing = "90"',
            'reference_day = "2021-05-09"\nmissing = "0"',
            'reference_day = "2021-05-09"\nmissing = "90"\nmissing_values = ["1990-01-01"]',
        ],
        0,
    ),
)
def test_what_values_mean_decides_the_noise(office: Office, other: str) -> None:
    """The same column and codelist, other ages: the difference must not be exact, nor free."""
    persons = pq.read_table(office.folder / "persons.parquet")
    rng = np.random.default_rng(8)
    born = np.datetime64("1990-01-01") + rng.integers(-9000, 9000, PERSONS)
    column = pa.array(born, mask=rng.random(PERSONS) < 0.05)
    pq.write_table(persons.append_column("born", column), office.folder / "persons.parquet")
    values = []
    for name, meant in (("one", 'reference_day = "2021-05-09"\nmissing = "90"'), ("two", other)):
        changed(office, age="born", coding=meant).publish(name)
        values.append(office.values(name))
    assert office.spent == 2
    both = values[0].keys() & values[1].keys()
    same = sum(values[0][cell] == values[1][cell] for cell in both) / len(both)
    assert same < 0.5, "with the same noise nearly all would be equal"
