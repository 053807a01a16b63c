"""The V x D plane has one colour for each limit, and one order of the limits."""

import numpy as np

from discreet.maths.feasible import Constraint
from discreet.report.noise_plane import BROKEN, COLOURS, WITHIN, kinds_of


def test_the_first_limit_that_is_broken_counts_and_noise_that_does_not_exist_before_all() -> None:
    no, yes = np.zeros((1, 1), dtype=bool), np.ones((1, 1), dtype=bool)
    assert kinds_of(dict.fromkeys(BROKEN, no)).tolist() == [[BROKEN[Constraint.PTABLE]]]
    assert kinds_of(dict.fromkeys(BROKEN, yes)).tolist() == [[WITHIN]]
    only = {**dict.fromkeys(BROKEN, yes), Constraint.DISTORTION: no}
    assert kinds_of(only).tolist() == [[BROKEN[Constraint.DISTORTION]]]
    assert set(BROKEN) <= set(Constraint)
    assert len(set(COLOURS.values())) == len(COLOURS) == len(BROKEN) + 1
