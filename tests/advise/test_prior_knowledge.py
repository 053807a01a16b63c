"""The study: noise of the honest scale, errors as predicted, one result for one seed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.advise import prior_knowledge
from discreet.advise.prior_knowledge import Study, study
from discreet.errors import Mistakes
from discreet.maths.microaggregation import expected_absolute_sum
from discreet.report.prior_knowledge import study_chart
from tests.page.drawn import rows


@pytest.fixture(scope="module")
def found() -> Study:
    return study(20_000, 7, [20, 80], [0.5, 4.6])


def test_realised_errors_are_the_predicted_ones(found: Study) -> None:
    for outcome in found.outcomes:
        # |S| of a nearly normal S has a standard deviation of 0.76 times its mean
        error = 0.8 * outcome.predicted / math.sqrt(outcome.clusters)
        assert abs(outcome.realised - outcome.predicted) < 4.5 * error
        assert outcome.predicted == expected_absolute_sum(188, outcome.epsilon, 2)
        assert outcome.realised > outcome.predicted_as_if_1


def test_setting_negative_counts_to_zero_only_adds(found: Study) -> None:
    for outcome in found.outcomes:
        assert outcome.realised_nonnegative > 2 * outcome.realised
        assert outcome.utility.compared == outcome.utility_signed.compared > 100


def test_more_records_per_cluster_and_more_epsilon_help(found: Study) -> None:
    medians = {(o.k, o.epsilon): o.utility.quantiles[0.5] for o in found.outcomes}
    assert medians[80, 4.6] < medians[20, 4.6] < medians[20, 0.5]
    assert medians[80, 4.6] < medians[80, 0.5]


def test_the_noise_has_the_sensitivity_2() -> None:
    draws = prior_knowledge._two_sided_geometric(np.random.default_rng(1), 1.0, (200_000,))
    error = draws.std() / math.sqrt(draws.size)
    assert abs(np.abs(draws).mean() - 1 / math.sinh(0.5)) < 4 * error
    assert abs(np.abs(draws).mean() - 1 / math.sinh(0.55)) > 4 * error


def test_the_same_seed_gives_the_same_study(found: Study) -> None:
    assert study(20_000, 7, [20], [0.5]).outcomes[0] == found.outcomes[0]


def test_counting_in_pieces_loses_nobody(found: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_knowledge, "_CELLS_AT_ONCE", 188 * 100)
    pieces = study(20_000, 7, [20], [100.0]).outcomes[0]
    assert pieces.clusters == found.outcomes[0].clusters
    assert pieces.realised == 0  # this epsilon leaves every count as it is, so that all records must be there
    assert pieces.utility.largest == pieces.utility_signed.largest == 0


def test_every_wrong_wish_is_told_at_once() -> None:
    with pytest.raises(Mistakes) as refused:
        study(10, -1, [1], [0.0])
    assert [problem.key for problem in refused.value.problems] == ["records", "seed", "k", "epsilon"]
    with pytest.raises(Mistakes):
        study(2_000, 1, [], [math.nan])


def test_the_picture_shows_every_outcome(found: Study) -> None:
    spec = study_chart(found).spec()
    above, below = spec["vconcat"]
    for layer, name in zip(above["layer"], ("predicted_relative", "realised_relative"), strict=True):
        assert [(row["x"], row["kind"], row["y"]) for row in rows(spec, layer)] == [
            (one.k, f"epsilon {one.epsilon:g}", 100 * getattr(one, name)) for one in found.outcomes
        ]
    assert len(rows(spec, below)) == 8
    assert all(0 < row["least"] <= row["middle"] <= row["most"] for row in rows(spec, below))
