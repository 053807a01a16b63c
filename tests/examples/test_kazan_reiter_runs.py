"""The adversary on releases that are made: the exact posterior is what comes true, the paper's chain is not."""

from functools import cache

import numpy as np
from examples.kazan_reiter_2022 import MOST, RHO_1, RHO_2, TABLE_6
from examples.kazan_reiter_2022_run import Attacked, Beliefs, run
from numpy.typing import NDArray

from discreet.maths.attacks.bayes_hierarchy import Chain

DEVIATIONS = 4.5


@cache
def made() -> Attacked:
    return run(RHO_1, RHO_2, dict.fromkeys(range(1, MOST + 1), 1))


def believed(some: Beliefs, chain: Chain) -> NDArray[np.float64]:
    different, at = np.unique(some.triples, axis=1, return_inverse=True)
    place = made().place
    return np.array([place.posterior(x1, x2, y1, chain) for x1, x2, y1 in different.T.tolist()])[
        at.reshape(-1)
    ]


def test_targets_are_there_as_often_as_the_exact_posterior_says() -> None:
    every = made().beliefs(MOST)
    # published counts of the larger area that six persons at most lead to, where dropping X1 <= X2 matters
    some = every.some((every.triples[1] <= 1) & (every.triples[0] >= 1))
    share, error = some.share(some.there)
    exact, paper = (float(some.weight @ believed(some, chain) / some.weight.sum()) for chain in Chain)
    assert abs(share - exact) < DEVIATIONS * error
    assert abs(share - paper) > DEVIATIONS * error


def test_larger_counts_are_as_frequent_as_their_posterior_says() -> None:
    near = made().beliefs(MOST).near(*TABLE_6, reach=12)
    law = made().place.larger(*TABLE_6)
    for k2 in range(4):
        share, error = near.share(near.larger == k2)
        assert abs(share - law.at(k2)) < DEVIATIONS * error


def test_what_the_prior_says_is_in_the_beliefs() -> None:
    every = made().beliefs(MOST)
    assert np.isclose(every.share(every.there)[0], 0.5)
    for there in (False, True):
        some = every.some(every.there == there)
        sizes = [some.share(some.larger == k2)[0] for k2 in range(there, MOST + there)]
        assert np.allclose(sizes, 1 / MOST)
