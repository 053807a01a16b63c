"""A hierarchical run killed while it measures, fits or rounds: the next one ends with the same bytes, charged once."""

import os
import signal
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.hierarchy import integers
from discreet.hierarchy.measure import Drawn
from discreet.hierarchy.mechanism import hierarchical_mechanism
from discreet.hierarchy.spine import Spine
from discreet.io.register import Register
from discreet.maths.privacy.accounting import Neighbours, Rho
from discreet.perturb.ledger import Ledger
from discreet.pipeline import hierarchical
from discreet.pipeline.protect import protect
from discreet.pipeline.spending import Spending
from discreet.programme.programme import load_programme
from discreet.release import measurements
from tests.cases import few
from tests.forked import Forked
from tests.pipeline.conftest import NOON, SECRET, contents
from tests.pipeline.small_country import NOISE, make_country

SEED = "cd" * 32
MOMENTS = {  # how many steps are taken before
    "measuring": 3,
    "fitting": 4,
    "rounding": 6,
    "estimates": 1,
    "files": 7,
}


class Watched:
    """Counts the steps of every stage."""

    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = {}
        self._stage = ""

    def stage(self, name: str, total: int | None = None) -> None:
        self._stage = name
        self.steps[name] = []

    def step(self, done: int = 1) -> None:
        self.steps[self._stage].append(done)


def made(folder: Path, out: Path, progress: Watched | None = None) -> None:
    """Protect the country."""
    protect(
        load_programme(folder / "programme.toml"),
        SECRET,
        out,
        folder / "private.json",
        clock=lambda: NOON,
        register=Register.of(folder / "register", SECRET),
        spending=Spending(Ledger.open(folder / "ledger.db", lambda: NOON), "census"),
        progress=progress,
    )


def country(folder: Path) -> None:
    make_country(folder, noise=NOISE.replace("[noise.strategy]", 'snapshot = "2021"\n[noise.strategy]'))
    ledger = Ledger.create(folder / "ledger.db", lambda: NOON)
    ledger.create_account("census", Rho(Fraction(2)), Neighbours.SUBSTITUTE, "person")
    Register.of(folder / "register", SECRET).bound("2021", {}, bytes.fromhex(SEED))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The release of a run that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "country"  # its name is the release's
    country(folder)
    made(folder, folder / "release")
    return contents(folder / "release")


@pytest.mark.parametrize("moment", few(MOMENTS, "measuring", "rounding"))
def test_a_killed_run_is_finished_by_the_next(
    tmp_path: Path, whole: dict[str, bytes], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integers, "PARENTS_AT_ONCE", 2)
    folder = tmp_path / "country"
    country(folder)
    assert Forked(killed, moment, folder).ended()[0] == -signal.SIGKILL
    assert not (folder / "release").exists()
    stored = len(list(folder.glob(".release.*.partial/records/fits-*.part")))
    assert (stored > 0) == (moment != "measuring")
    fitted = 0
    children = integers._Descent.children

    def counted(self: integers._Descent, given: tuple[int, object]) -> object:
        nonlocal fitted
        fitted += 1
        return children(self, given)  # type: ignore[arg-type]

    monkeypatch.setattr(integers._Descent, "children", counted)
    seen = Watched()
    made(folder, folder / "release", seen)
    assert contents(folder / "release") == whole
    batches = list(integers._batches(_spine(folder)))
    assert fitted == sum(len(parents) for parents in batches[stored:])
    assert Ledger.open(folder / "ledger.db", lambda: NOON).spent("census") == Rho(Fraction(1, 2))
    assert not list(folder.glob(".release.*"))
    written = {name for name in seen.steps if name.startswith("writing estimates of ")}
    if moment == "files":  # all tables were written, and the measurements of some levels
        assert not written
        assert "fitting areas" not in seen.steps
        assert 0 < sum(seen.steps["writing measurements"]) < _measured(folder)
        return
    areas = sum(seen.steps["estimating areas"])
    assert areas == sum(seen.steps["fitting areas"]) == len(_spine(folder))
    assert len(seen.steps["estimating areas"]) > 5
    assert len(written) == (2 if moment == "estimates" else 3)
    assert sum(seen.steps["writing measurements"]) == _measured(folder)


def _spine(folder: Path) -> Spine:
    return hierarchical_mechanism(load_programme(folder / "programme.toml")).plan.spine


def _measured(folder: Path) -> int:
    """How many areas have measurements, each where it is measured."""
    plan = hierarchical_mechanism(load_programme(folder / "programme.toml")).plan
    return sum(len(plan.kinds[kind].queries) > 0 for kind in plan.kind_of.tolist())


def _kill_after(owner: object, name: str, steps: int) -> None:
    plain, done = getattr(owner, name), 0

    def counted(*given: object, **named: object) -> object:
        nonlocal done
        done += 1
        if done > steps:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given, **named)

    setattr(owner, name, counted)


def killed(moment: str, folder: Path) -> None:
    """A run that kills itself."""
    integers.PARENTS_AT_ONCE = 2
    places: dict[str, tuple[object, str]] = {
        "measuring": (Drawn, "noisy"),
        "fitting": (integers, "fit_blocks"),
        "rounding": (integers, "whole_numbers"),
        "estimates": (hierarchical, "write_estimates"),
        "files": (measurements._QueryFile, "add"),
    }
    _kill_after(*places[moment], MOMENTS[moment])
    made(folder, folder / "release")
