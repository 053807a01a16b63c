from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.audit.differencing import ExactNoise
from discreet.audit.differencing_areas import Crossing, difference_areas
from discreet.io.serialize import json_text
from discreet.maths.attacks.differencing import differences
from discreet.maths.noise.additive import uniform
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing
from tests.audit.hamlets import hamlets
from tests.audit.made import cell_key, flat
from tests.audit.subsets import record_keys, universe


def exact(V: float, D: int) -> ExactNoise:
    change = PublishedLaw(PTableLaw(solve(PTableParameters(D, V))), keeps_zeros=True)
    return ExactNoise(change, change)


SLIVER = Crossing(
    ("grid", "lau"),
    (("g1", "g2"), ("l10", "l11", "l12")),
    np.array([0, 0, 1, 1]),
    np.array([0, 1, 2, 1]),
    np.array([500, 40, 300, 3]),
)


def test_a_sliver_is_told_by_its_areas_and_never_by_its_size() -> None:
    found = difference_areas(SLIVER, 10)
    (one,) = found.listed
    assert (one.plus_of, one.plus, one.minus_of, one.minus, one.above) == (
        "grid",
        ("g2",),
        "lau",
        ("l12",),
        None,
    )
    assert (found.found, found.exhaustive, found.areas, found.pieces) == (1, True, (2, 3), 4)
    told = json.loads(json_text(found))
    assert told["by_areas"] == {"2": 1}
    assert not {"records", "counts"} & set(told["listed"][0])
    assert "500" not in repr(SLIVER)
    assert difference_areas(SLIVER, 3).found == 0


def test_noise_leaves_a_sliver_as_often_as_the_noises_of_its_two_areas_are_equal() -> None:
    large = PTableLaw(solve(PTableParameters(5, 2.0))).row(1000)
    found = difference_areas(SLIVER, 10, noise=exact(2.0, 5))
    assert found.after is not None
    assert found.after.largest == found.after.expected == pytest.approx(float((large.p**2).sum()))
    assert found.after.above == 0
    weak = difference_areas(SLIVER, 10, noise=exact(0.05, 1))
    assert weak.after is not None
    assert (weak.after.above, weak.listed[0].above) == (1, True)


@pytest.mark.parametrize(("V", "D", "low", "high"), [(0.02, 1, 0.85, 1.0), (5.0, 10, 0.0, 0.15)])
def test_published_areas_give_as_many_away_as_predicted(V: float, D: int, low: float, high: float) -> None:
    """Runs the attack: publish both geographies, subtract what the search names, compare with the truth."""
    place = hamlets(900, 1)
    crossing = place.crossing()
    found = differences(crossing.a, crossing.b, crossing.counts, 10).found
    after = difference_areas(crossing, 10, noise=exact(V, D)).after
    assert after is not None
    mechanism, _ = cell_key(V, D)
    trees = [flat("GRID", place.cells), flat("LAU", place.districts)]
    columns = {"GRID": place.cell, "LAU": place.district}
    whole, _ = universe(trees, [["GRID"], ["LAU"]], columns, record_keys(len(place.cell), 1), mechanism)
    shown = [np.zeros(table.cube.size, dtype=np.int64) for table in whole.tables]
    for values, table in zip(shown, whole.tables, strict=True):
        cells, published = table.load()
        values[cells] = published
    revealed = 0
    for one in found:
        plus, minus = shown if one.plus_of.value == "a" else shown[::-1]
        left = plus[1:][list(one.plus)].sum() - minus[1:][list(one.minus)].sum()
        revealed += left == one.records
    rate = after.expected / len(found)
    assert len(found) == 900
    assert low <= revealed / len(found) <= high
    assert abs(revealed - after.expected) < 4 * np.sqrt(len(found) * rate * (1 - rate))


def test_the_most_exposed_are_listed_first() -> None:
    crossing = hamlets(60, 2).crossing()
    found = difference_areas(crossing, 10, noise=exact(1.0, 3), alpha=0.25, most=25)
    assert found.after is not None
    assert found.by_areas == {2: 20, 3: 40}  # read from the side with fewer areas
    assert found.after.above == 20  # those of two areas
    assert [bool(one.above) for one in found.listed] == [True] * 20 + [False] * 5


def test_each_geography_has_its_own_noise_from_whichever_side_a_difference_is_read() -> None:
    quiet, loud = (
        PublishedLaw(uniform(reach), Publishing(Negatives.KEEP), keeps_zeros=True) for reach in (1, 10)
    )
    turned = Crossing(SLIVER.names[::-1], SLIVER.codes[::-1], SLIVER.b, SLIVER.a, SLIVER.counts)
    for crossing, noise in ((SLIVER, ExactNoise(quiet, loud)), (turned, ExactNoise(loud, quiet))):
        after = difference_areas(crossing, 10, noise=noise).after
        assert after is not None
        assert after.expected == pytest.approx(1 / 21)
    many = hamlets(3, 1).crossing()  # the first is read from its cell, the third from its districts
    after = difference_areas(
        many, 10, noise=ExactNoise(loud, PublishedLaw(uniform(1), keeps_zeros=True))
    ).after
    assert after is not None
    assert after.largest <= 1 / 21 + 1e-12
