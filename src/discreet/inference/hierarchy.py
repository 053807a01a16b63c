"""Estimates, differences, sums, quotients and tests from the counts of a hierarchical release.

They use the published least squares estimates, never the whole counts, which are biased where counts are small.
Estimates of siblings, of an area and a larger one, and of a cell and its margin are correlated; the covariances follow
from the strategy and the tree of areas (``hierarchy.joint``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from discreet.errors import mistake
from discreet.formats.dataset import VALUE
from discreet.hierarchy.joint import Joint
from discreet.inference.released import ReleasedCube, Where, filter_text, released_cube
from discreet.inference.results import Inferred
from discreet.maths.inference.intervals import checked_level
from discreet.maths.inference.linear import combination, independence, quotient
from discreet.programme.codelist import TOTAL
from discreet.programme.hierarchical import Output
from discreet.release.hierarchy import ERROR, ESTIMATE, PublishedHierarchy, published_hierarchy
from discreet.release.hierarchy_cubes import PublishedCube
from discreet.release.reader import AnyRelease, Release

ASSUMPTION = (
    "the estimate is a sum of many independent noises, nearly normal, with the published standard error"
)
JOINT = (
    "the estimates are sums of many independent noises, nearly normal, with the covariances that follow from the "
    "published strategy"
)
SWAPPED = "households were swapped before counting: what is inferred are the counts after swapping"
NOT_HIERARCHICAL = "use `discreet infer interval` (in Python: inference.interval with noise_of)"
MOST_CELLS = 1000  # of one sum or table: their covariances are worked out pair by pair
CLEAR = 3.0  # standard errors by which a row or column of a test must be above zero

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class EstimateResult(Inferred):
    """One cell: the whole count, the unbiased estimate, its standard error and an interval for the true count."""

    cube: str
    cell: str
    published: int
    estimate: float
    standard_error: float
    low: float
    high: float
    level: float
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class CombinedResult(Inferred):
    """A sum or a difference of cells: of the whole counts, the estimate, its standard error, interval and test."""

    cube: str
    what: str
    cells: int
    published: int
    estimate: float
    standard_error: float
    correlation: float | None  # of the two estimates of a difference
    low: float
    high: float
    level: float
    statistic: float | None
    p_value: float | None  # of no difference; None for sums
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class QuotientResult(Inferred):
    """A ratio of two cells, or the share of a part in a whole: estimate, standard error and Fieller's interval."""

    cube: str
    what: str
    published: float | None
    estimate: float | None
    standard_error: float | None
    low: float
    high: float
    level: float
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class EstimatedIndependence(Inferred):
    """A test of independence from estimates; the naive one takes the whole counts as true."""

    cube: str
    rows: int
    columns: int
    left_out: tuple[str, ...]  # codes that are not clearly above zero
    df: int
    statistic: float
    p_value: float
    naive_statistic: float
    naive_p_value: float
    noise: str
    assumption: str
    sentence: str
    caveats: tuple[str, ...] = ()


def is_estimated(release: Release) -> bool:
    """Whether a release is hierarchical, so that its cells have no noise of their own."""
    return release.noise.hierarchy is not None


@dataclass(frozen=True, eq=False)
class _Cube:
    """A cube of a hierarchical release that publishes its estimates."""

    released: ReleasedCube
    found: PublishedHierarchy

    @classmethod
    def of(cls, release: AnyRelease, cube: str | None) -> _Cube:
        released = released_cube(release, cube)
        found = published_hierarchy(released.release)
        if found is None or Output.ESTIMATES not in found.rule.outputs:
            remedy = NOT_HIERARCHICAL if found is None else "ask the office for its estimates"
            raise mistake(released.release.folder, "release", "it publishes no estimates", remedy)
        return cls(released, found)

    @property
    def id(self) -> str:
        return self.released.entry.id

    @cached_property
    def published(self) -> PublishedCube:
        return PublishedCube(self.found, self.released.entry)

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Whole counts, estimates and standard errors of the grid."""
        table = self.found.estimates(self.released.entry.id)
        return tuple(table[name].to_numpy() for name in (VALUE, ESTIMATE, ERROR))

    def at(self, chosen: Sequence[Mapping[str, str]]) -> tuple[Floats, Floats, Floats]:
        """Whole counts and estimates of some cells, and the covariance of the estimates."""
        if not 0 < len(chosen) <= MOST_CELLS:
            raise mistake(
                self.found.release.folder, "where", f"{len(chosen)} cells", f"choose 1 to {MOST_CELLS}"
            )
        places = [self.published.position(one) for one in chosen]
        counts, estimates, errors = (column[places] for column in self.columns)
        covariance = Joint(self.found.covariances).matrix([self.published.cell(one) for one in chosen])
        exact = errors == 0
        covariance[exact], covariance[:, exact] = 0.0, 0.0
        return counts, estimates, covariance

    @property
    def noise(self) -> str:
        return str(self.found.release.noise.method)

    @property
    def caveats(self) -> tuple[str, ...]:
        return (SWAPPED,) if self.found.release.manifest.swapped else ()

    def cell(self, where: Where) -> tuple[dict[str, str], str]:
        """One cell, and how a sentence names it."""
        chosen = self.released.codes(filter_text(where))
        return chosen, _named(chosen)

    def pair(self, where: Where, other_where: Where) -> tuple[list[dict[str, str]], str, str]:
        """Two different cells, and how a sentence names them."""
        (first, named), (second, other) = self.cell(where), self.cell(other_where)
        if first == second:
            remedy = "name two different cells, each by a filter such as 'SEX == \"F\"'"
            raise mistake(self.found.release.folder, "where", f"both cells are {named}", remedy)
        return [first, second], named, other


def _named(chosen: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {code}" for name, code in chosen.items() if code != TOTAL) or "the total"


def _rounded(*values: float) -> tuple[float, ...]:
    return tuple(float(np.round(value, 3)) for value in values)


def estimated(
    release: AnyRelease, cube: str | None = None, where: Where = "", level: float = 0.95
) -> EstimateResult:
    """The estimate of the cell of a cube that a filter chooses; variables that it does not name are at their total.

    The interval comes from the least squares estimate and never from the whole count, which is biased where counts are
    small. It ends at 0, below which no count is.

    Of a table, or of a release with one cube, ``cube`` may be left out. ``where`` is a filter, as text or as codes by
    variable.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "sex": "1/4", "detailed": "1/2"}
    >>> strategy = {"histogram": ["sex", "age"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho=2, strategy=strategy)
    >>> persons = {"pid": range(600), "lau": ["A", "B", "B"] * 200, "sex": ["F", "M"] * 300, "age": ["y", "o"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex", "age"), noise, secret=ds.Secret.new())
    >>> found = ds.inference.estimated(table, where={"sex": "F"})
    >>> found.cell, found.low < found.estimate < found.high, 250 < found.estimate < 350
    ('sex = F', True, True)
    """
    checked_level(level)
    found = _Cube.of(release, cube)
    chosen, named = found.cell(where)
    count, estimate, error = (column[found.published.position(chosen)] for column in found.columns)
    one = combination(np.array([estimate]), np.array([[error**2]]), np.ones(1), level)
    low, high = _rounded(max(one.low, 0.0), max(one.high, 0.0))
    sentence = (
        f"{named}: exactly {count}, which is published without noise."
        if error == 0
        else f"{named}: estimated {estimate:g}, between {low:g} and {high:g} with confidence {level:g}; the "
        f"published whole count is {count}."
    )
    return EstimateResult(
        found.id, named, int(count), float(estimate), float(error), low, high, level, found.noise, ASSUMPTION, sentence,
        found.caveats,
    )  # fmt: skip


def estimated_difference(
    release: AnyRelease,
    cube: str | None = None,
    where: Where = "",
    other_where: Where = "",
    level: float = 0.95,
) -> CombinedResult:
    """The difference of two cells, and the test of no difference; the estimates may be correlated.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "sex": "1/4", "detailed": "1/2"}
    >>> strategy = {"histogram": ["sex", "age"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho=2, strategy=strategy)
    >>> persons = {"pid": range(600), "lau": ["A", "B", "B"] * 200, "sex": ["F", "M"] * 300, "age": ["y", "o"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex", "age"), noise, secret=ds.Secret.new())
    >>> found = ds.inference.estimated_difference(table, where={"lau": "B"}, other_where={"lau": "A"})
    >>> found.what, 150 < found.estimate < 250, found.p_value < 0.05
    ('lau = B less lau = A', True, True)
    """
    checked_level(level)
    found = _Cube.of(release, cube)
    both, named, other = found.pair(where, other_where)
    counts, values, covariance = found.at(both)
    one = combination(values, covariance, np.array([1.0, -1.0]), level)
    scale = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    correlation = float(covariance[0, 1]) / scale if scale > 0 else None
    estimate, error, low, high = _rounded(one.estimate, one.error, one.low, one.high)
    what = f"{named} less {other}"
    tested = (
        "known exactly"
        if one.statistic is None
        else f"between {low:g} and {high:g} with confidence {level:g}; p = {one.p_value:.3g} for no difference"
    )
    sentence = f"{what}: estimated {estimate:g} (standard error {error:g}), {tested}."
    return CombinedResult(
        found.id, what, 2, int(counts[0] - counts[1]), estimate, error, correlation, low, high, level, one.statistic,
        one.p_value, found.noise, JOINT, sentence, found.caveats,
    )  # fmt: skip


def estimated_total(
    release: AnyRelease, cube: str | None = None, where: Where = "", level: float = 0.95
) -> CombinedResult:
    """The sum of all cells that a filter names, which need be no cell of the cube.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "sex": "1/4", "detailed": "1/2"}
    >>> strategy = {"histogram": ["sex", "age"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho=2, strategy=strategy)
    >>> persons = {"pid": range(600), "lau": ["A", "B", "B"] * 200, "sex": ["F", "M"] * 300, "age": ["y", "o"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex", "age"), noise, secret=ds.Secret.new())
    >>> found = ds.inference.estimated_total(table, where='lau in ("A", "B") and sex == "F"')
    >>> found.low < found.estimate < found.high
    True
    """
    checked_level(level)
    found, where = _Cube.of(release, cube), filter_text(where)
    table = found.released.cells(where).table
    chosen = [dict(zip(table.axes, codes, strict=True)) for codes in product(*table.labels)]
    counts, values, covariance = found.at(chosen)
    one = combination(values, covariance, np.ones(len(chosen)), level)
    estimate, error, low, high = _rounded(one.estimate, one.error, max(one.low, 0), max(one.high, 0))
    named = where.strip() or "the total"
    spread = (
        "known exactly"
        if one.statistic is None
        else f"between {low:g} and {high:g} with confidence {level:g}"
    )
    sentence = f"{named}: {len(chosen)} cells, estimated {estimate:g} (standard error {error:g}), {spread}."
    return CombinedResult(
        found.id, named, len(chosen), int(counts.sum()), estimate, error, None, low, high, level, None, None,
        found.noise, JOINT, sentence, found.caveats,
    )  # fmt: skip


def estimated_ratio(
    release: AnyRelease,
    cube: str | None = None,
    where: Where = "",
    base_where: Where = "",
    level: float = 0.95,
) -> QuotientResult:
    """The ratio of two cells, by Fieller's interval.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "sex": "1/4", "detailed": "1/2"}
    >>> strategy = {"histogram": ["sex", "age"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho=2, strategy=strategy)
    >>> persons = {"pid": range(600), "lau": ["A", "B", "B"] * 200, "sex": ["F", "M"] * 300, "age": ["y", "o"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex", "age"), noise, secret=ds.Secret.new())
    >>> found = ds.inference.estimated_ratio(table, where={"lau": "B"}, base_where={"lau": "A"})
    >>> 1.5 < found.estimate < 2.5, found.low < found.estimate < found.high
    (True, True)
    """
    return _quotient(release, cube, (where, base_where), level, float("inf"))


def estimated_proportion(
    release: AnyRelease,
    cube: str | None = None,
    where: Where = "",
    whole_where: Where = "",
    level: float = 0.95,
) -> QuotientResult:
    """The share of a part in a whole that contains it, by Fieller's interval; it ends at 1.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "sex": "1/4", "detailed": "1/2"}
    >>> strategy = {"histogram": ["sex", "age"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho=2, strategy=strategy)
    >>> persons = {"pid": range(600), "lau": ["A", "B", "B"] * 200, "sex": ["F", "M"] * 300, "age": ["y", "o"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex", "age"), noise, secret=ds.Secret.new())
    >>> found = ds.inference.estimated_proportion(table, where={"lau": "B", "sex": "F"}, whole_where={"lau": "B"})
    >>> found.what, 0.4 < found.estimate < 0.6
    ('lau = B, sex = F as a share of lau = B', True)
    """
    found = _Cube.of(release, cube)
    (part, named), (whole, other) = found.cell(where), found.cell(whole_where)
    outside = [name for name, code in whole.items() if not _contains(found.published, name, code, part[name])]
    if outside:
        value = f"{named} is not within {other}: {', '.join(outside)}"
        raise mistake(
            found.found.release.folder,
            "where",
            value,
            "name a whole that contains the part, or take the ratio",
        )
    return _quotient(release, cube, (where, whole_where), level, 1.0)


def _contains(cube: PublishedCube, name: str, whole: str, part: str) -> bool:
    at = next(k for k, axis in enumerate(cube.entry.axes) if axis.variable == name)
    parent = dict(zip(cube.listed[at].codes, cube.listed[at].parents, strict=True))
    while part not in (whole, TOTAL):
        part = parent.get(part) or TOTAL
    return part == whole


def _quotient(
    release: AnyRelease, cube: str | None, wheres: tuple[Where, Where], level: float, most: float
) -> QuotientResult:
    checked_level(level)
    found = _Cube.of(release, cube)
    both, named, other = found.pair(*wheres)
    counts, values, covariance = found.at(both)
    one = quotient(values, covariance, level)
    low, high = min(one.low, most), min(one.high, most)
    what = f"{named} {'as a share of' if most == 1 else 'divided by'} {other}"
    if one.bounded:
        sentence = (
            f"{what}: estimated {one.estimate:.4g} (standard error {one.error:.2g}), between {low:.4g} and "
            f"{high:.4g} with confidence {level:g}."
        )
    else:
        sentence = f"{what}: no value is excluded with confidence {level:g}, for {other} may be empty."
    published = float(counts[0] / counts[1]) if counts[1] else None
    return QuotientResult(
        found.id, what, published, one.estimate, one.error, low, high, level, found.noise,
        f"{JOINT}; the interval is Fieller's", sentence, found.caveats,
    )  # fmt: skip


def estimated_independence(
    release: AnyRelease,
    cube: str | None = None,
    rows: str = "",
    columns: str = "",
    where: Where = "",
) -> EstimatedIndependence:
    """Test whether rows and columns of a table are independent, allowing for noise and its correlations.

    >>> import discreet as ds
    >>> shares = {"total": "1/4", "sex": "1/4", "detailed": "1/2"}
    >>> strategy = {"histogram": ["sex", "age"], "levels": {"total": "1/2", "lau": "1/2"}, "queries": shares}
    >>> noise = ds.Hierarchical(geography="lau", rho=2, strategy=strategy)
    >>> persons = {"pid": range(600), "lau": ["A", "B", "B"] * 200, "sex": ["F", "M"] * 300, "age": ["y", "o"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"], of="person")
    >>> table = ds.protect(census, ds.Cube("lau", "sex", "age"), noise, secret=ds.Secret.new())
    >>> found = ds.inference.estimated_independence(table, rows="sex", columns="age")
    >>> found.df, found.p_value < 0.05
    (1, True)
    """
    found = _Cube.of(release, cube)
    codes, axes = found.released.crossed_codes([rows, columns], filter_text(where))
    chosen = [dict(zip(codes, some, strict=True)) for some in product(*codes.values())]
    counts, values, covariance = found.at(chosen)
    labels = [codes[name] for name in axes]
    shape = tuple(len(one) for one in labels)
    kept, left_out = _clear(values.reshape(shape), covariance, labels)
    if min(len(one) for one in kept) < 2:
        value = "fewer than two rows or columns are clearly above zero"
        raise mistake(found.found.release.folder, "table", value, "take a larger area, or coarser levels")
    cells = np.arange(len(chosen)).reshape(shape)[np.ix_(*kept)]
    flat = cells.reshape(-1)
    one = independence(values[cells], covariance[np.ix_(flat, flat)])
    naive = _pearson(counts[cells].astype(np.float64))
    sentence = (
        f"{axes[0]} and {axes[1]}: {'not ' if one.p_value < 0.05 else ''}compatible with independence, "
        f"p = {one.p_value:.3g} (statistic {one.statistic:.4g}, {one.df} degrees of freedom); taking whole counts as "
        f"true, p = {float(chdtrc(one.df, naive)):.3g}."
    )
    caveats = (
        *((f"left out, not clearly above zero: {', '.join(left_out)}",) if left_out else ()),
        *found.caveats,
    )
    return EstimatedIndependence(
        found.id, cells.shape[0], cells.shape[1], left_out, one.df, one.statistic, one.p_value, naive,
        float(chdtrc(one.df, naive)), found.noise, f"{JOINT}; persons fall into cells independently", sentence, caveats,
    )  # fmt: skip


def _clear(
    values: Floats, covariance: Floats, labels: Sequence[Sequence[str]]
) -> tuple[list[list[int]], tuple[str, ...]]:
    """Rows and columns whose sums are above zero by some standard errors, and the codes of the others."""
    places = np.arange(values.size).reshape(values.shape)
    kept: list[list[int]] = []
    left_out: list[str] = []
    for axis in (0, 1):
        some = []
        for at, code in enumerate(labels[axis]):
            cells = places.take(at, axis=axis)
            error = float(np.sqrt(max(covariance[np.ix_(cells, cells)].sum(), 0.0)))
            if values.take(at, axis=axis).sum() > CLEAR * error and values.take(at, axis=axis).sum() > 0:
                some.append(at)
            else:
                left_out.append(code)
        kept.append(some)
    return kept, tuple(left_out)


def _pearson(counts: Floats) -> float:
    rows, columns, n = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    expected = np.outer(rows, columns) / max(n, 1)
    some = expected > 0
    return float(((counts - expected)[some] ** 2 / expected[some]).sum())
