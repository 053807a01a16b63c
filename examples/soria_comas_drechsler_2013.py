"""J. Soria-Comas and J. Drechsler (2013), Evaluating the potential of differential privacy mechanisms for census data.

It computes the analytical error of the slides and their study on a synthetic census (``discreet.pipeline``). The
register behind the slides is not public, so that nothing empirical can be compared number by number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from discreet.advise.prior_knowledge import SENSITIVITY, Study, StudyOutcome, study
from discreet.maths.microaggregation import expected_absolute_sum, expected_relative_error
from discreet.report.prior_knowledge import study_chart
from examples.claims import Claim, exact, unprinted
from examples.running import Example, Replication, Size, main

CELLS = 188
EPSILONS = (0.1, 1.0, 4.6)
KS = (50, 100, 200, 500)
CHOSEN = 4.6
FORMULA = "the slide shows the formula as a picture"


def replicate(size: Size) -> Replication:
    """Compute everything; sizes differ in the persons of the census."""
    persons = 1_000_000 if size is Size.FULL else 20_000
    found = study(persons, 1, KS, EPSILONS)
    claims = [*_analytical(found), *_realised(found)]
    return Replication(claims, {"study": study_chart(found).spec()})


def _analytical(found: Study) -> Iterator[Claim]:
    yield exact(
        "slide on analytical results",
        "cells of the cross-classification without structural zeros",
        str(CELLS),
        found.cells,
    )
    for sensitivity in (1, SENSITIVITY):
        errors = [expected_absolute_sum(CELLS, epsilon, sensitivity) for epsilon in EPSILONS]
        what = f"expected error of a cluster's total, sensitivity {sensitivity}, epsilon 0.1, 1, 4.6"
        yield unprinted("the same", what, errors, FORMULA)
    for k in KS:
        shares = [100 * expected_relative_error(CELLS, epsilon, 1, k) for epsilon in EPSILONS]
        honest = [100 * expected_relative_error(CELLS, epsilon, SENSITIVITY, k) for epsilon in EPSILONS]
        what = f"relative error, %, k = {k}: sensitivity 1, epsilon 0.1, 1, 4.6; then sensitivity 2"
        yield unprinted(
            "the same",
            what,
            [*shares, *honest],
            "in the text: 0.1 and 1 are of no use, 4.6 is used",
            digits=3,
        )


def _realised(found: Study) -> Iterator[Claim]:
    for outcome in found.outcomes:
        ratio = outcome.realised / outcome.predicted
        what = f"realised by predicted error, k = {outcome.k}, epsilon {outcome.epsilon:g}"
        yield unprinted(
            "empirical slides",
            what,
            ratio,
            "the register is not public; a synthetic census instead",
            error=_error(outcome),
        )


def _error(outcome: StudyOutcome) -> float:
    """The relative standard error of a mean of absolute values of nearly normal sums: sqrt((pi/2 - 1) / number)."""
    return math.sqrt((math.pi / 2 - 1) / outcome.clusters)


EXAMPLE = Example(
    "soria-comas-drechsler-2013",
    "Soria-Comas & Drechsler (2013), Differential privacy for census data",
    replicate,
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
