"""Swap rates tried on records: the shares are those of a real swap, and the smallest sufficient rate is chosen."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.advise.facts import seeded_secret
from discreet.advise.programme_advice import Wish, advise_programme
from discreet.advise.swap import RATES, RateTrial, _enough, advise_swap
from discreet.io.progress import Quiet
from discreet.programme.programme import Programme
from discreet.swap.figures import figures_of, read_members
from discreet.swap.result import profile_names
from discreet.swap.swapping import swap
from tests.swap import hamlets


@pytest.fixture
def programme(tmp_path: Path) -> Programme:
    return hamlets.build(tmp_path, hamlets.tables(5))


def test_a_trial_is_what_the_swap_itself_does(programme: Programme) -> None:
    found = advise_swap(programme, hamlets.SECRET, 1, Quiet())
    assert found is not None
    assert programme.swap is not None
    result = swap(programme, hamlets.SECRET)
    members = read_members(programme, result.households, hamlets.SECRET)
    figures = figures_of(result, members, programme.swap.k, profile_names(programme.swap))
    finest = figures.levels[-1]
    trial = next(one for one in found.trials if one.rate == float(programme.swap.rate))
    assert trial.swapped == figures.swapped / figures.households
    assert trial.true_uniques == finest.chance_true
    assert found.at_risk == finest.at_risk_before / figures.households
    assert len(found.trials) == len({*RATES, programme.swap.rate})


def test_higher_rates_swap_no_fewer(programme: Programme) -> None:
    found = advise_swap(programme, hamlets.SECRET, 1, Quiet())
    assert found is not None
    swapped = [trial.swapped for trial in found.trials]
    assert swapped == sorted(swapped)
    assert swapped[0] < swapped[-1]


def test_the_smallest_sufficient_rate_is_chosen(programme: Programme) -> None:
    lax, strict = (advise_swap(programme, hamlets.SECRET, 1, Quiet(), limit) for limit in (1.0, 1e-9))
    assert lax is not None
    assert strict is not None
    assert lax.rate == 0
    assert all(trial.true_uniques for trial in strict.trials)
    assert strict.rate is None
    trials = [RateTrial(rate, 0.1, 0.1, true, None) for rate, true in ((0.0, 0.5), (0.1, 0.2), (0.2, 0.1))]
    assert list(_enough(trials, 0.2)) == [0.1, 0.2]
    assert list(_enough([*trials, RateTrial(0.3, 0.2, 0.0, None, None)], 0.05)) == [0.3]


def test_a_limit_of_zero_is_a_limit(programme: Programme) -> None:
    found = advise_swap(programme, hamlets.SECRET, 1, Quiet(), 0.0)
    gated = replace(programme, gates=replace(programme.gates, true_uniques=0.0))
    declared = advise_swap(gated, hamlets.SECRET, 1, Quiet())
    for one in (found, declared):
        assert one is not None
        assert one.limit == 0
        assert one.rate is None or not next(t.true_uniques for t in one.trials if t.rate == one.rate)
    asked = advise_swap(gated, hamlets.SECRET, 1, Quiet(), 0.25)
    assert asked is not None
    assert asked.limit == 0.25


def test_the_advice_of_a_programme_has_that_on_its_swap(programme: Programme) -> None:
    found = advise_programme(programme, Wish(), has_data=True, seed=1, threads=1, progress=Quiet()).swap
    assert found == advise_swap(programme, seeded_secret(1, "swap"), 1, Quiet())
    assert found is not None
    assert (
        advise_programme(programme, Wish(), has_data=False, seed=1, threads=1, progress=Quiet()).swap is None
    )


def test_without_a_rule_nothing_is_tried(programme: Programme) -> None:
    assert advise_swap(replace(programme, swap=None), hamlets.SECRET, 1, Quiet()) is None
