"""Risk-utility curves: repeatable by their seed, near what the laws let expect, better with less noise."""

from pathlib import Path

import numpy as np
import pytest

from discreet.advise.advise import task_of
from discreet.advise.curves import Curves, curves, rekeyed
from discreet.advise.facts import counted_facts
from discreet.audit.redundancy import Mode
from discreet.errors import Mistakes
from discreet.io.progress import Quiet
from discreet.maths.cells.counting import counts_of, keys_of
from discreet.maths.feasible import RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.programme.programme import load_programme
from discreet.report.advice import curves_chart
from tests.cli import town


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = town.build(tmp_path_factory.mktemp("town"))
    town.edit(made, ('weight = "weight"\n', ""))
    return made


def drawn(
    folder: Path, kind: LawKind = LawKind.CELL_KEY, repeats: int = 30, seed: int = 1, threads: int = 1
) -> Curves:
    programme = load_programme(folder / "programme.toml")
    facts = counted_facts(programme, Mode.NESTED, 1, Quiet())
    task = task_of(programme, kind, RiskLimits())
    return curves(
        programme,
        facts,
        task,
        facts.exposed(kind).ratio,
        5,
        repeats,
        seed,
        2.5 if kind is LawKind.CELL_KEY else None,
        threads,
    )


def means(found: Curves, measure: str) -> list[float]:
    spreads = [point.measures[measure] for point in found.points]
    return [one.mean for one in spreads if one is not None]


def test_less_noise_is_more_useful_and_more_risky(folder: Path) -> None:
    for kind in (LawKind.CELL_KEY, LawKind.GEOMETRIC):
        found = drawn(folder, kind, repeats=12)
        sign = 1 if kind is LawKind.CELL_KEY else -1  # V grows with the noise, epsilon falls
        for measure in ("l1", "l2", "hellinger"):
            values = np.array(means(found, measure))
            assert (sign * np.diff(values) > -0.05 * values[:-1]).all(), (kind, measure)
        assert (sign * np.diff([point.averaging for point in found.points]) < 0).all()


@pytest.mark.long
def test_the_squared_error_is_the_variance_of_the_table(folder: Path) -> None:
    """Nearly all cells of the town are large; the few small ones have a little less."""
    found = drawn(folder, repeats=40)
    at = [point.parameter for point in found.points].index(2.0)
    last = solve(PTableParameters(5, 2.0))
    expected = last.variance(last.last_row)
    spread = found.points[at].measures["l2"]
    assert spread is not None
    assert 0.8 * expected < spread.mean < 1.1 * expected
    assert spread.quartiles[0] <= spread.quartiles[1] <= spread.quartiles[2]


def test_a_seed_decides_everything_and_threads_nothing(folder: Path) -> None:
    one, two, other = (
        drawn(folder, repeats=3),
        drawn(folder, repeats=3, threads=2),
        drawn(folder, repeats=3, seed=2),
    )
    assert one == two
    assert one != other
    assert 2.5 in [point.parameter for point in one.points]


def test_other_keys_for_the_same_records() -> None:
    """Keys of disjoint groups still add up to the key of their union, and counts stay."""
    generator = np.random.default_rng(3)
    keys, counts = generator.integers(0, 2**32, (2, 50), dtype=np.uint64), generator.integers(1, 99, (2, 50))
    parts = (keys << np.uint64(32)) | counts.astype(np.uint64)
    whole = parts[0] + parts[1]
    again = [rekeyed(cells, bytes(range(7, 39))) for cells in (parts[0], parts[1], whole)]
    assert (counts_of(again[2]) == counts.sum(axis=0)).all()
    assert (keys_of(again[2]) == keys_of(again[0]) + keys_of(again[1])).all()
    assert (keys_of(again[0]) != keys_of(parts[0])).mean() > 0.9


def test_the_picture_has_a_panel_for_each_loss(folder: Path) -> None:
    chart = curves_chart(drawn(folder))  # with fewer repetitions no one may be published in so small a town
    losses = {row["panel"] for row in chart.spec()["data"]["values"]}
    assert len(losses) == 5
    assert "V 2.5:" in chart.description


def test_too_few_repetitions_are_refused(folder: Path) -> None:
    with pytest.raises(Mistakes, match="--repeats: 1; give 2 to"):
        drawn(folder, repeats=1)
