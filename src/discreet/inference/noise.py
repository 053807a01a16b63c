"""The noise of published counts as a data user knows it: from a release, a p-table file, or by name and parameters.

Where the office does not publish all of it, the assumptions are stated with the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.io.ptable_files import read_ptable
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import NoiseParameters, named_law
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import UNCHANGED, Negatives, PublishedLaw, Publishing, written_law
from discreet.perturb.noise import ADJUSTED, NO_LAW, Noise
from discreet.release.reader import AnyRelease, opened_release

ASSUMED_BOUND = 10  # where a release publishes the variance and no bound
ZEROS = (
    "there are zeros and no negative counts: if negative counts were published as zero, set negatives: zero; here they "
    "are assumed to be published unchanged"
)
SWAPPED = "households were swapped before counting: what is inferred are the counts after swapping"


@dataclass(frozen=True, eq=False)
class KnownLaw:
    """The law of a published count as a data user knows it, and the caveats of every result."""

    counts: PublishedLaw
    name: str
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject a law that has no columns."""
        _ = self.counts.changes

    def caveats_for(self, counts: NDArray[np.int64]) -> tuple[str, ...]:
        """The caveats for some counts: zeros without any negative count may be negative counts published as zero."""
        clipped = (
            self.counts.is_additive
            and self.counts.span[0] < 0
            and (counts == 0).any()
            and (counts >= 0).all()
        )
        return (*self.caveats, ZEROS) if clipped else self.caveats


def noise_of(release: AnyRelease, cross_tabulation: str | None = None) -> KnownLaw:
    """The noise that a release publishes; where laws differ, that of a cross-tabulation such as ``persons///SEX:1``.

    >>> import discreet as ds
    >>> persons = {"pid": range(90), "sex": ["F", "M", "F"] * 30, "lms": ["S", "M"] * 45}
    >>> census = ds.Population(persons=persons, person_id="pid")
    >>> cubes, noise = [ds.Cube("sex", "lms")], ds.CellKey(V=2, D=5)
    >>> release = ds.protect(census, cubes, noise, secret=ds.Secret.new(), disclose="law")
    >>> noise = ds.inference.noise_of(release)
    >>> ds.inference.interval(release["sex_lms"].value(sex="F"), noise).interval.level >= 0.95
    True
    """
    opened = opened_release(release)
    noise, folder = opened.noise, str(opened.folder)
    caveats = (SWAPPED,) if opened.manifest.swapped else ()
    if noise.law is None:
        return _assumed(noise, folder, caveats)
    return KnownLaw(noise.published(_chosen(noise, cross_tabulation, folder)), str(noise.method), caveats)


def noise_by(
    kind: str,
    negatives: str = "keep",
    rounding: int = 1,
    threshold: int = 0,
    keeps_zeros: bool = False,
    **parameters: object,
) -> KnownLaw:
    """A law by its name, as ``noise_by("laplace", epsilon=0.5, bound=7)``; the rest describes post-processing.

    ``negatives``: "keep", or "zero" where negative counts are published as zero.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_by("laplace", epsilon=0.5, bound=7)
    >>> ds.inference.interval(12, noise).interval.high
    17
    """
    wanted = _parameters(kind, parameters)
    law = named_law(wanted)
    if negatives not in list(Negatives):
        raise mistake("", "negatives", negatives, f"choose from {', '.join(Negatives)}")
    if wanted.kind is LawKind.CELL_KEY and (negatives != Negatives.KEEP or keeps_zeros):
        raise mistake(
            "", "negatives or zeros", "given for cell-key noise", "leave them out: a p-table rules them"
        )
    rule = Publishing(Negatives(negatives), rounding, threshold)
    given = ", ".join(f"{name} {value}" for name, value in wanted.given().items())
    return KnownLaw(PublishedLaw(law, rule, keeps_zeros), f"{kind} noise, {given}")


def _parameters(kind: str, given: Mapping[str, object]) -> NoiseParameters:
    names = [item.name for item in fields(NoiseParameters)]
    unknown = [name for name in given if name not in names]
    if unknown or kind not in list(LawKind):
        value, known = (unknown[0], names[1:]) if unknown else (kind, list(LawKind))
        raise mistake("", "parameter" if unknown else "kind", value, f"choose from {', '.join(known)}")
    return NoiseParameters(LawKind(kind), **given)  # type: ignore[arg-type]


def noise_of_ptable_file(path: str | Path) -> KnownLaw:
    """The noise of the cell key method with a p-table from a file, in any of the known formats.

    >>> import discreet as ds
    >>> path = ds.write_ptable(ds.ptable(V=2, D=5), getfixture("tmp_path") / "ptable.csv")
    >>> ds.inference.noise_of_ptable_file(path).name
    'the cell key method with ptable.csv'
    """
    law = PTableLaw(read_ptable(Path(path)).law())
    return KnownLaw(PublishedLaw(law), f"the cell key method with {Path(path).name}")


def noise_of_law(
    law: Law | Sequence[Mapping[int, float]],
    published: Publishing = UNCHANGED,
    keeps_zeros: bool = False,
) -> KnownLaw:
    """A law of the library, or rows change -> probability for true counts 0, 1, ..; the last serves all larger ones.

    >>> import discreet as ds
    >>> noise = ds.inference.noise_of_law([{0: 1.0}, {-1: 0.5, 1: 0.5}])
    >>> ds.inference.interval(4, noise).interval.high
    5
    """
    noise = written_law(law) if isinstance(law, Sequence) else law
    return KnownLaw(PublishedLaw(noise, published, keeps_zeros), "a given law")


def _chosen(known: Noise, cross_tabulation: str | None, folder: str) -> Law:
    """The law of a cross-tabulation; where they differ it must be named."""
    if cross_tabulation is not None and cross_tabulation in known.sums:
        added = known.sums[cross_tabulation]
        remedy = f"infer from the cells of {added.finest}, up to {added.cells} for each"
        raise mistake(folder, "noise", f"{cross_tabulation} is a sum without noise of its own", remedy)
    if cross_tabulation is not None and cross_tabulation in known.laws:
        return known.laws[cross_tabulation]
    if known.law is None or (cross_tabulation is None and known.laws):
        some = ", ".join(sorted(known.laws)[:5])
        remedy = f"name the cross-tabulation; different laws have {some}"
        raise mistake(folder, "noise", f"{len(known.laws)} cross-tabulations have other laws", remedy)
    return known.law


def _assumed(known: Noise, folder: str, caveats: tuple[str, ...]) -> KnownLaw:
    """The maximum-entropy p-table of the published variance, where the law is not published."""
    if known.hierarchy is not None:
        remedy = (
            "use its estimates: `discreet infer interval`, difference, total, ratio, proportion or independence of a "
            "cube of the release (in Python: inference.estimated, estimated_difference and so on)"
        )
        raise mistake(folder, "noise", "the counts were fitted to noisy marginals", remedy)
    if known.adjusted:
        raise mistake(folder, "noise", ADJUSTED, NO_LAW)
    if known.variance is None:
        remedy = "ask the office for its law or variance; without it the noise is unknown"
        raise mistake(folder, "noise", "the release does not publish its law", remedy)
    bound = known.bound or ASSUMED_BOUND
    table = solve(PTableParameters(bound, known.variance, 0))
    assumed = (
        f"the release publishes a variance of at most {known.variance:g} and not its law: assumed is maximum-entropy "
        f"noise of that variance, at most {bound}, that leaves zeros unchanged; intervals may be somewhat too wide"
    )
    return KnownLaw(PublishedLaw(PTableLaw(table)), f"{known.method} (law assumed)", (*caveats, assumed))
