"""Where the chosen noise of a release stands among all that keep its limits (Bach 2020, Figures 1, 2 and 6).

It owns what is compared: the tuples that the release really shows and the statistic that its programme repeats most.
The constraints are maths.feasible's, the grid and the limits the adviser's.
"""

from __future__ import annotations

from typing import Any

from discreet.maths.feasible import UTILITY, Constraint, Exposed, Plane, plane
from discreet.pipeline.advise import USUAL_LIMITS, Task, grid, task_of
from discreet.pipeline.measures import Measures
from discreet.schema.noise import CellKeyNoise


def region(measures: Measures) -> dict[str, Any]:
    """The V x D plane of the cell key method, ready for JSON; each row of a constraint is a text of 0 and 1."""
    noise = measures.case.programme.noise
    if not isinstance(noise, CellKeyNoise):
        return {"not_possible": "the plane of variance and largest change is that of the cell key method"}
    task = task_of(measures.case.programme, None, USUAL_LIMITS)
    ratio = min(
        one["riskiest_k_over_t2"] for universe in measures.redundancy() for one in universe["exposed"]
    )
    exposed = Exposed(ratio, measures.bounds.groups)
    return _summary(plane(*grid(exposed, task.limits), exposed, task.limits, task.js), task)


def _summary(found: Plane, task: Task) -> dict[str, Any]:
    declared, smallest = task.declared, found.smallest
    return {
        "V": [round(float(v), 6) for v in found.V],
        "D": found.D.tolist(),
        "holds": {
            name.value: ["".join("1" if one else "0" for one in row) for row in held]
            for name, held in found.holds.items()
        },
        "utility": [name.value for name in UTILITY if name in found.holds],
        "exists": Constraint.PTABLE.value,
        "chosen": None if declared is None else {"V": declared[0], "D": declared[1]},
        "least": None if smallest is None else {"V": smallest[0], "D": smallest[1]},
        "limits": vars(task.limits),
    }
