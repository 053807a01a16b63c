"""Published studies of methods, repeated on a synthetic census or on the records of a programme."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from discreet.advise.declared_geography import (
    DeclaredGeography,
    DeclaredStudy,
    declared_records,
    study_declared,
)
from discreet.advise.prior_knowledge import Study, StudyOutcome
from discreet.advise.prior_knowledge import study as run_study
from discreet.api.arguments import names_arguments
from discreet.api.programme import Programme
from discreet.api.results import Result
from discreet.io.progress_bar import shown_progress
from discreet.report.prior_knowledge import study_chart


@names_arguments
def study(
    records: int = 200_000,
    *,
    k: Sequence[int] = (50, 100, 200, 500),
    epsilon: Sequence[float] = (0.1, 1, 4.6),
    seed: int = 1,
    progress: bool = True,
) -> Result[Study]:
    """Geography as prior knowledge: geometric noise on clusters of neighbours in a synthetic census.

    >>> import discreet as ds
    >>> found = ds.study(2000, k=[50], epsilon=[1], progress=False)
    >>> found.outcomes[0].k
    50
    """
    with shown_progress(not progress) as listener:
        found = run_study(records, seed, list(k), list(epsilon), listener)
    return Result(found, tuple(map(_line, found.outcomes)), drawings=(study_chart(found),))


@names_arguments
def study_declared_geography(
    what: Programme | str | Path,
    *,
    regions: str,
    attributes: Sequence[str],
    clusters: str | None = None,
    x: str = "",
    y: str = "",
    k: Sequence[int] = (50, 200),
    epsilon: Sequence[float] = (0.1, 1, 4.6),
    targets: int = 100,
    seed: int = 1,
    progress: bool = True,
) -> Result[DeclaredStudy]:
    """The same on a programme's own records: clusters are public, attributes are protected. Confidential.

    >>> import discreet as ds
    >>> programme = ds.synth(3000, tables=["3.1"], progress=False).programme()
    >>> found = ds.study_declared_geography(
    ...     programme, regions="GEO.M", attributes=["SEX"], clusters="GEO", epsilon=[1], progress=False
    ... )
    >>> found.smallest > 0
    True
    """
    declared = DeclaredGeography(regions=regions, attributes=tuple(attributes), clusters=clusters, x=x, y=y)
    programme = what if isinstance(what, Programme) else Programme.read(what)
    with shown_progress(not progress) as listener:
        read = declared_records(programme.resolved, declared, listener)
        found = study_declared(read, seed, list(k), list(epsilon), targets, listener)
    sizes = f"Clusters of {found.smallest:,} to {found.largest:,} records"
    lines = (
        f"{sizes}; {found.unique:.1%} of the records are unique in theirs.",
        *map(_line, found.study.outcomes),
    )
    return Result(found, lines, drawings=(study_chart(found.study),))


def _line(one: StudyOutcome) -> str:
    return (
        f"k {one.k}, epsilon {one.epsilon:g}: mean error of a cluster {one.realised:.4g} records, "
        f"predicted {one.predicted:.4g}"
    )
