import shutil
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.evidence import known_noise, published
from discreet.errors import BrokenRelease
from discreet.perturb.mechanism import NoiseFacts
from discreet.perturb.statement import noise_statement
from discreet.programme.noise import Negatives
from discreet.programme.release import Disclosure
from discreet.release.reader import open_release
from tests.release.small import SEX, cubes, publish, table
from tests.release.small import cube as weighted_cube

LAW = ({0: 1.0}, {-1: 0.25, 0: 0.5, 1: 0.25})
FACTS = NoiseFacts("the cell key method", 0.5, 1, {"D": 1, "V": 0.5, "js": 0}, LAW)


def test_an_outsider_reads_the_published_cells_and_nothing_else(tmp_path: Path) -> None:
    weighted = weighted_cube("w", SEX, weight="grossing")
    publish(tmp_path / "r", tables=[table(one) for one in (*cubes(), weighted)])
    seen = published(open_release(tmp_path / "r"))
    by_id = {one.id: one for universe in seen.universes for one in universe.tables}
    assert seen.left_out == ("w",)
    assert set(by_id) == {cube.id for cube in cubes()}
    for cube in cubes():
        read = by_id[cube.id]
        assert [axis.codes for axis in read.cube.axes] == [axis.codes for axis in cube.axes]
        assert [axis.parents.tolist() for axis in read.cube.axes] == [
            axis.parents.tolist() for axis in cube.axes
        ]
        cells, values = read.load()
        assert np.array_equal(cells, table(cube).cells)
        assert np.array_equal(values, table(cube).values)


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    shutil.rmtree(tmp_path / "r" / "parquet")
    with pytest.raises(BrokenRelease, match="is missing; fetch the release again"):
        published(open_release(tmp_path / "r"))


def test_what_is_told_of_cell_key_noise_is_known_and_no_more() -> None:
    whole = known_noise(noise_statement(FACTS, Disclosure.LAW))
    assert whole.law is not None
    assert whole.law.row(3).p.tolist() == [0.25, 0.5, 0.25]
    assert (whole.bound, whole.bound_is_exact, whole.keeps_zeros, whole.same_noise) == (1, True, True, True)
    rough = known_noise(noise_statement(FACTS, Disclosure.VARIANCE))
    assert (rough.law, rough.bound, rough.bound_is_exact, rough.variance) == (None, 10, False, 0.5)
    nothing = known_noise(noise_statement(FACTS, Disclosure.NONE))
    assert (nothing.law, nothing.bound, nothing.variance) == (None, None, None)


def test_noise_with_a_law_is_known_for_every_cross_tabulation() -> None:
    words: dict[str, int | float | str] = {
        "draw": "description",
        "keep_zeros": "structural",
        "negatives": "zero",
        "rounding": 5,
        "threshold": 3,
    }
    facts = NoiseFacts(
        "geometric", 2.0, None, words, (), "geometric", "1/2", {"persons///total": "2"}, is_open=True
    )
    known = known_noise(noise_statement(facts, Disclosure.NONE))
    assert known.law is not None
    assert known.law.row(0).variance == pytest.approx(7.835, abs=1e-3)
    assert known.laws["persons///total"].row(0).variance == pytest.approx(0.3620, abs=1e-3)
    assert (known.published.negatives, known.published.rounding, known.published.threshold) == (
        Negatives.ZERO,
        5,
        3,
    )
    assert not known.same_noise
    assert not known.keeps_zeros


def test_a_law_that_is_none_is_a_damaged_release() -> None:
    broken = NoiseFacts("the cell key method", 0.5, 1, {"D": 1}, ({0: 1.0}, {1: 0.9}))
    with pytest.raises(BrokenRelease, match="noise law"):
        known_noise(noise_statement(broken, Disclosure.LAW))
