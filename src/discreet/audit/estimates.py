"""What the estimates of a hierarchical release disclose: how likely a true count is recovered exactly.

The least squares estimate is the best linear combination of all measurements, so that averaging has nothing to add to
it: rounded, it is the true count with probability erf(1 / (2 sqrt(2) standard error)). Counts that are published
without noise by declaration are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import Published
from discreet.errors import mistake
from discreet.hierarchy.cubes import cube_errors
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.lazy import lazily
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import Output
from discreet.release.hierarchy import ERROR

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CubeExposure:
    """The estimates of one cube."""

    cube: str
    counts: int  # with noise
    exact: int  # without, by declaration
    smallest_error: float  # standard error
    success: float  # the largest probability that an estimate, rounded, is the true count
    expected: float  # how many are


@dataclass(frozen=True)
class EstimateFindings:
    """The estimates of all cubes."""

    cubes: tuple[CubeExposure, ...]

    @property
    def counts(self) -> int:
        """How many counts have noise."""
        return sum(one.counts for one in self.cubes)

    @property
    def expected(self) -> float:
        """How many of them are expected to be recovered exactly."""
        return sum(one.expected for one in self.cubes)

    @property
    def success(self) -> float:
        """The largest probability that a count is."""
        return max((one.success for one in self.cubes), default=0.0)


def attack_estimates(seen: Published) -> EstimateFindings:
    """The published standard errors of a release, read as probabilities of recovering a count."""
    found = seen.hierarchy
    if found is None or Output.ESTIMATES not in found.rule.outputs:
        remedy = "fit its measurements by least squares" if found else "average its tables"
        raise mistake("", "estimates", "the release does not publish them", remedy)
    names = [table.id for universe in seen.universes for table in universe.tables]
    return EstimateFindings(tuple(_exposure(name, found.estimates(name)[ERROR].to_numpy()) for name in names))


def declared_estimates(chosen: HierarchicalMechanism, cubes: Iterable[Cube]) -> EstimateFindings:
    """The same by the strategy and the tree of areas only, before any noise is drawn."""
    return EstimateFindings(tuple(_exposure(cube.id, cube_errors(chosen, cube)) for cube in cubes))


def _exposure(name: str, errors: Floats) -> CubeExposure:
    noisy = errors[errors > 0]
    chances = recovered(noisy)
    return CubeExposure(
        name,
        len(noisy),
        len(errors) - len(noisy),
        float(noisy.min(initial=np.inf)) if len(noisy) else 0.0,
        float(chances.max(initial=0.0)),
        float(chances.sum()),
    )


def recovered(errors: Floats) -> Floats:
    """The probability that an estimate with this standard error, rounded, is the true count."""
    return np.asarray(special.erf(0.5 / (np.sqrt(2.0) * errors)))
