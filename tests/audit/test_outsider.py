import shutil
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.attack import ATTACKS
from discreet.audit.evidence import published
from discreet.errors import BrokenRelease
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable import ptable_of_rows
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.perturb.noise import Noise, cell_key_noise
from discreet.programme.release import Disclosure
from discreet.release.noise_entry import NoiseEntry, entry_of
from discreet.release.reader import open_release
from discreet.report.published import TITLES
from tests.release.small import SEX, cubes, publish, table
from tests.release.small import cube as weighted_cube

NOISE = cell_key_noise(
    PTableLaw(ptable_of_rows([([0], [1.0]), ([0, 1, 2], [0.25, 0.5, 0.25])])), variance=0.5, bound=1
)


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


def told(disclose: Disclosure) -> Noise:
    """What an outsider reads in the manifest."""
    return entry_of(NOISE.public(disclose)).noise()


def test_what_is_told_of_cell_key_noise_is_known_and_no_more() -> None:
    whole = told(Disclosure.LAW)
    assert whole.law is not None
    assert whole.law.row(3).p.tolist() == [0.25, 0.5, 0.25]
    assert (whole.bound, whole.disclosed, whole.keeps_zeros, whole.same_noise) == (
        1,
        Disclosure.LAW,
        True,
        True,
    )
    rough = told(Disclosure.VARIANCE)
    assert (rough.law, rough.bound, rough.disclosed, rough.variance) == (None, 10, Disclosure.VARIANCE, 0.5)
    nothing = told(Disclosure.NONE)
    assert (nothing.law, nothing.bound, nothing.variance) == (None, None, None)


def test_noise_with_a_law_is_known_for_every_cross_tabulation() -> None:
    known = NoiseEntry.model_validate(
        {
            "kind": "geometric",
            "disclose": "law",
            "drawing": "description",
            "zeros": "structural",
            "publishing": {"negatives": "zero", "rounding": 5, "threshold": 3},
            "parameters": {"cell": "1/2", "other_cells": {"persons///total": "2"}},
        }
    ).noise()
    assert known.law is not None
    assert known.law.row(0).variance == pytest.approx(7.835, abs=1e-3)
    assert known.laws["persons///total"].row(0).variance == pytest.approx(0.3620, abs=1e-3)
    assert known.publishing == Publishing(Negatives.ZERO, 5, 3)
    assert not known.same_noise
    assert not known.keeps_zeros


def test_a_law_that_is_none_is_a_damaged_release() -> None:
    broken = entry_of(NOISE).model_copy(update={"law": ({0: 1.0}, {1: 0.9})})
    with pytest.raises(BrokenRelease, match="noise law"):
        broken.noise()


def test_the_report_has_a_title_for_every_attack() -> None:
    assert set(TITLES) == set(ATTACKS)
