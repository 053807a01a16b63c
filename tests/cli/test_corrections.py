"""A corrected census from the command line: what the pair reveals is said first, and refused if it exposes someone."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.cli.app import main
from tests.pipeline.conftest import contents

SIZES = {"SEX": 2, "AGE": 9, "LMS": 5, "CAS": 6, "EDU": 7, "POB": 6, "COC": 5, "TEN": 4}
PERSONS = 3_000
CELL_KEY = '[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n'
GEOMETRIC = '[noise]\nkind = "geometric"\nepsilon = 1\n'
FAILED, WRONG = 1, 2
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: exit code, output, errors."""

    def ran(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


class Office:
    """A census with nine attributes: an area and eight others."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "release"
        self.columns = _drawn(PERSONS, 3)
        for name, size in {"GEO": 40, **SIZES}.items():
            rows = "".join(f"{name}{k},,\n" for k in range(size))
            (folder / f"{name.lower()}.csv").write_text(f"code,parent,label\n{rows}")
        self.declare(CELL_KEY)
        self.persons(PERSONS)
        for secret, digit in (("secret.key", "ab"), ("other.key", "cd")):
            (folder / secret).write_text(digit * 32)
            (folder / secret).chmod(0o600)

    def declare(self, noise: str, more: str = "") -> None:
        names = ("GEO", *SIZES)
        declared = "".join(
            f'[variables.{name}]\nof = "person"\ncodelist = "{name.lower()}.csv"\n' for name in names
        )
        crosses = [("SEX", "AGE"), *(("SEX", name) for name in list(SIZES)[2:])]
        cubes = "".join(f'[[cubes]]\nid = "{a}-{b}"\naxes = ["GEO", "{a}", "{b}"]\n' for a, b in crosses)
        head = '[population]\npersons = "persons.parquet"\nperson_id = "pid"\n'
        (self.folder / "programme.toml").write_text(head + declared + cubes + noise + more)

    def persons(self, many: int) -> None:
        pq.write_table(
            pa.table({name: column[:many] for name, column in self.columns.items()}),
            self.folder / "persons.parquet",
        )

    def protect(
        self, *more: str | Path, secret: str = "secret.key", out: Path | None = None
    ) -> list[str | Path]:
        words = ("--secret", self.folder / secret, "--out", out or self.out, "--threads", "1")
        return ["protect", self.folder / "programme.toml", *words, *more]

    def newcomer(self) -> dict[str, str]:
        return {name: self.columns[name.lower()][-1] for name in ("GEO", *SIZES)}


def _drawn(persons: int, seed: int) -> dict[str, list[str]]:
    generator = np.random.default_rng(seed)
    columns = {"pid": [f"p{k}" for k in range(persons)]}
    for name, size in {"GEO": 40, **SIZES}.items():
        drawn = generator.integers(0, size, persons)
        columns[name.lower()] = [f"{name}{k}" for k in drawn]
    return columns


@pytest.fixture
def office(tmp_path: Path, run: Run) -> Office:
    """The office after its first release, with one person added to the census since."""
    made = Office(tmp_path)
    made.persons(PERSONS - 1)
    assert run(*made.protect("--quiet")) == (0, "", "")
    made.persons(PERSONS)
    return made


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_correction_that_exposes_someone_is_refused_and_nothing_is_lost(office: Office, run: Run) -> None:
    before = everything(office.folder)
    code, output, errors = run(*office.protect("--quiet"))
    assert (code, output) == (FAILED, "")
    assert "in 7 tables changed, and with the same secret" in errors
    assert "1 person exposed: who knows up to 2 attributes of one learns up to 8 more" in errors
    assert "gates.corrections:" in errors
    assert "--accept-corrections" in errors
    assert everything(office.folder) == before
    assert not any(code in errors for code in office.newcomer().values())  # no attribute in a message


def test_it_is_published_where_it_is_accepted_or_allowed_and_said_first(office: Office, run: Run) -> None:
    code, output, errors = run(*office.protect("--accept-corrections", "--json"))
    assert (code, errors) == (0, "")
    (pair,) = json.loads(output)["revealed"]
    assert (pair["exposed"], pair["attributes"]) == (1, 8)
    published = contents(office.out)
    code, output, errors = run(*office.protect("--quiet"))  # the same again: nothing is new
    assert (code, output, errors) == (0, "", "")
    assert contents(office.out) == published
    office.declare(CELL_KEY, "[gates]\ncorrections = 1\n")
    office.persons(PERSONS - 1)
    code, _, errors = run(*office.protect("--quiet"))
    assert code == 0
    assert errors.startswith(f"Note: {office.out}, published before:")
    assert "1 person exposed" in errors


def test_a_rehearsal_judges_the_pair_as_well(office: Office, run: Run) -> None:
    office.declare(CELL_KEY, "[gates]\ncorrections = 0\n")
    before = everything(office.folder)
    code, output, _ = run(*office.protect("--report-only"))
    assert code == FAILED
    assert "Broken gates.corrections: the number of persons" in output
    office.persons(PERSONS - 1)
    code, output, _ = run(*office.protect("--report-only"))
    assert (code, output) == (0, "")
    office.persons(PERSONS)
    assert everything(office.folder) == before


def test_an_earlier_release_elsewhere_is_compared_too(office: Office, run: Run) -> None:
    words = office.protect("--earlier", office.out, "--quiet", out=office.folder / "second")
    code, _, errors = run(*words)
    assert code == FAILED
    assert "1 person exposed" in errors
    assert not (office.folder / "second").exists()
    code, _, errors = run(*office.protect("--earlier", office.folder / "codes", "--quiet"))
    assert code == WRONG
    assert "no manifest.json there" in errors


def test_with_another_secret_two_noises_are_averaged(office: Office, run: Run) -> None:
    code, _, errors = run(*office.protect("--quiet", secret="other.key"))
    assert code == 0
    # erf(1/2 / sqrt(2 V)) of one value and erf(1/2 / sqrt(V)) of the mean of two, V = 2
    assert "recovers it exactly with probability 0.383, one of them with 0.276" in errors


def test_guarantees_are_summed(office: Office, run: Run) -> None:
    office.declare(GEOMETRIC)
    code, _, errors = run(*office.protect("--quiet", out=office.folder / "private"))
    assert code == 0
    assert "add up" not in errors
    code, _, errors = run(*office.protect("--quiet", out=office.folder / "private"))
    assert code == 0
    assert "both releases together have at most epsilon = 2 and delta = " in errors


def test_a_damaged_release_is_replaced_only_where_that_is_accepted(office: Office, run: Run) -> None:
    damaged = office.out / "manifest.json"
    damaged.write_text(damaged.read_text().replace('"unit": "persons"', '"unit": "people"', 1))
    code, _, errors = run(*office.protect("--quiet"))
    assert code == WRONG
    assert "cannot be compared" in errors
    code, _, errors = run(*office.protect("--quiet", "--accept-corrections"))
    assert code == 0
    assert "is not known" in errors


def test_attack_and_audit_find_the_newcomer(office: Office, run: Run) -> None:
    second = office.folder / "second"
    assert run(*office.protect("--quiet", out=second))[0] == 0
    others = ("averaging", "removal", "bounds", "bayes", "reconstruction", "disclosure")
    without = [word for name in others for word in ("--without", name)]
    code, output, _ = run("attack", second, "--earlier", office.out, "--json", *without)
    found = json.loads(output)["differencing"]["corrections"]
    assert code == 0
    assert found["people"][0]["attributes"] == office.newcomer()
    code, output, _ = run("attack", second, "--earlier", office.out, *without)
    assert "1 person exposed" in output
    assert all(f"{name}={code}" in output for name, code in office.newcomer().items())
    words = [
        "audit", second, "--programme", office.folder / "programme.toml", "--secret", office.folder / "secret.key",
        "--earlier", office.out, "--threads", "1", *without, "--without", "redundancy", "--without", "privacy",
        "--without", "utility", "--without", "region", "--without", "protection",
    ]  # fmt: skip
    code, output, _ = run(*words)
    assert code == 0  # no gate is declared
    assert "1 person exposed" in output
    office.declare(CELL_KEY, "[gates]\ncorrections = 0\n")
    code, output, _ = run(*words)
    assert code == FAILED
    assert "BROKEN: gates.corrections" in output
