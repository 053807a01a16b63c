import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.bayes_histograms import AreaAttack, HistogramFinding, HistogramPrior, attack_histograms
from discreet.audit.evidence import Published, Truth, values_at
from discreet.errors import Mistakes
from discreet.io.serialize import json_text
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from tests.audit.made import Made, cell_key, flat, made, nested, random_columns
from tests.audit.private import gaussian

TREES = [nested("GEO", 4, 40), flat("AGE", 5), flat("SEX", 2)]
CROSSES = [["GEO", "AGE", "SEX"]]


def world(rho: Fraction) -> Made:
    mechanism, known = gaussian(TREES, CROSSES, rho)
    return made(TREES, CROSSES, random_columns(TREES, 1600, 1), mechanism, known, 2)


def key_world(V: float, D: int) -> Made:
    mechanism, known = cell_key(V, D)
    return made(TREES, CROSSES, random_columns(TREES, 1600, 1), mechanism, known, 2)


def by_levels(one: Made, attack: AreaAttack) -> dict[str, HistogramFinding]:
    found = attack_histograms(one.published, one.truth, attack).found
    return {" x ".join(variable for variable, _ in finding.levels): finding for finding in found}


@pytest.mark.parametrize("prior", list(HistogramPrior))
@pytest.mark.parametrize("one", [world(Fraction(1, 2)), key_world(2.0, 4)], ids=["dp", "key"])
def test_decisions_are_those_of_single_histograms(one: Made, prior: HistogramPrior) -> None:
    attack = AreaAttack("GEO", 2, 12, prior, 0.8)
    finding = by_levels(one, attack)["AGE x GEO"]
    table, noise = one.published.universes[0].tables[0], one.published.noise
    true, shown, strides = one.truth.counted[table.id], table.load(), table.cube.strides
    assert noise.law is not None
    law = noise.published(noise.law)
    ages = np.arange(1, 6) * strides[1]
    weights = np.ones(5) if prior is HistogramPrior.UNIFORM else values_at(shown, ages) + 0.5
    belief = tuple((weights / weights.sum()).tolist())
    records = right = mean = above = base = 0.0
    areas = 0
    for town in np.flatnonzero(table.cube.axes[0].depths == 2).tolist():
        cells = town * strides[0] + ages
        counts, values = values_at(true, cells), values_at(shown, cells).tolist()
        if not 2 <= counts.sum() <= 12:
            continue
        areas += 1
        for category in np.flatnonzero(counts).tolist():
            known = counts - (np.arange(5) == category)
            posterior = HistogramAdversary(law, tuple(known.tolist()), belief).posterior(values)
            best = posterior > posterior.max() - 1e-9
            times = counts[category]
            records += times
            right += times * best[category] / best.sum()
            mean += times * posterior[category]
            above += times * (posterior[category] > 0.8)
            base += (
                times / 5
                if prior is HistogramPrior.UNIFORM
                else times * (category == int(np.argmax(weights)))
            )
    assert (finding.areas, finding.records, finding.categories, finding.above) == (areas, records, 5, above)
    assert finding.success == pytest.approx(right / records)
    assert finding.mean_posterior == pytest.approx(mean / records)
    assert finding.baseline == pytest.approx(base / records)
    assert finding.contradicted == 0


def test_weak_noise_gives_categories_away_at_the_predicted_rate() -> None:
    """The mean of the exact chances of all records, within 4 standard errors."""
    one = world(Fraction(4))
    finding = by_levels(one, AreaAttack("GEO", 2, 6, HistogramPrior.UNIFORM))["AGE x GEO x SEX"]
    table, noise = one.published.universes[0].tables[0], one.published.noise
    assert noise.law is not None
    law, true = noise.published(noise.law), one.truth.counted[table.id]
    strides = table.cube.strides
    categories = np.add.outer(np.arange(1, 6) * strides[1], np.arange(1, 3) * strides[2]).ravel()
    predicted = 0.0
    for town in np.flatnonzero(table.cube.axes[0].depths == 2).tolist():
        counts = values_at(true, town * strides[0] + categories)
        if 2 <= counts.sum() <= 6:
            for own in np.flatnonzero(counts).tolist():
                known = counts - (np.arange(10) == own)
                adversary = HistogramAdversary(law, tuple(known.tolist()), (0.1,) * 10)
                predicted += counts[own] * adversary.correct(own) / finding.records
    assert finding.success == pytest.approx(predicted, abs=4 * finding.standard_error)
    assert finding.success > 0.8
    assert finding.standard_error < 0.04


def test_sound_noise_leaves_the_prior() -> None:
    finding = by_levels(world(Fraction(1, 400)), AreaAttack("GEO", 2, 30, HistogramPrior.SHARES))[
        "AGE x GEO x SEX"
    ]
    assert abs(finding.gain) < 0.05 + 4 * finding.standard_error
    assert finding.above == 0


def test_fixed_zeros_prove_categories() -> None:
    """A target alone in its category is proven wherever the count did not fall to zero."""
    one = key_world(2.0, 5)
    finding = by_levels(one, AreaAttack("GEO", 2, 12, HistogramPrior.UNIFORM, 0.99))["AGE x GEO x SEX"]
    assert finding.above > 0.2 * finding.records
    assert finding.gain > 0.3


def test_people_who_were_swapped_contradict_what_is_known() -> None:
    one = key_world(0.5, 2)
    moved = {name: (cells, np.roll(counts, 11)) for name, (cells, counts) in one.truth.counted.items()}
    found = attack_histograms(one.published, Truth(moved, moved), AreaAttack("GEO", 2, 60)).found
    assert sum(finding.contradicted for finding in found) > 0
    assert all(0 <= finding.success <= 1 for finding in found)


def test_all_levels_of_the_other_variables_are_attacked() -> None:
    scan = attack_histograms(*_both(world(Fraction(1))), AreaAttack("GEO", 2, 60))
    assert sorted(finding.categories for finding in scan.found) == [2, 5, 10]
    told = json.loads(json_text(scan))
    assert told["largest_gain"] == pytest.approx(max(finding.gain for finding in scan.found))
    assert scan.worst is not None
    assert math.isfinite(scan.worst.standard_error)


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (("LAU",), "choose from AGE"),
        (("GEO", 5, 3), "least first"),
        (("GEO", 2, 3, HistogramPrior.SHARES, 1.0), "between"),
    ],
)
def test_attacks_that_cannot_be(attack: tuple[object, ...], said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        attack_histograms(*_both(world(Fraction(1))), AreaAttack(*attack))  # type: ignore[arg-type]


def _both(one: Made) -> tuple[Published, Truth]:
    return one.published, one.truth
