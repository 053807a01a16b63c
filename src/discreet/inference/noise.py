"""The noise of published counts as a data user knows it: from a release, a p-table file, or by name and parameters.

Where the office does not publish all of it, the assumptions are stated with the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import KnownNoise, known_noise
from discreet.errors import mistake
from discreet.io.ptable_files import read_ptable
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.named import NoiseParameters, named_law
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import (
    CountNoise,
    Publishing,
    count_noise,
    noise_of_ptable,
    noise_of_rows,
)
from discreet.programme.noise import Negatives
from discreet.release.reader import Release, open_release

SUPPOSED_BOUND = 10  # where a release tells the variance and no bound
ZEROS = (
    "there are zeros and no negative counts: if negative counts were published as zero, say so (negatives: zero), for "
    "here they are taken to be published as they are"
)
SWAPPED = "households were swapped before counting: what is inferred are the counts after swapping"


@dataclass(frozen=True, eq=False)
class Noise:
    """The law of a published count for each true count, and what must be said with every result."""

    counts: CountNoise
    name: str
    caveats: tuple[str, ...] = ()

    def caveats_for(self, counts: NDArray[np.int64]) -> tuple[str, ...]:
        """Zeros without any negative count look as if negative counts had been published as zero."""
        clipped = (
            self.counts.is_additive
            and self.counts.span[0] < 0
            and (counts == 0).any()
            and (counts >= 0).all()
        )
        return (*self.caveats, ZEROS) if clipped else self.caveats


def noise_of(release: str | Path | Release, cross_tabulation: str | None = None) -> Noise:
    """The noise that a release tells; where laws differ, that of a cross-tabulation such as ``persons///SEX:1``."""
    opened = release if isinstance(release, Release) else open_release(release)
    said = opened.manifest.noise
    known = known_noise(said)
    caveats = (SWAPPED,) if opened.manifest.swapped else ()
    if known.law is None:
        return _supposed(known, str(opened.folder), caveats)
    law = _chosen(known, cross_tabulation, str(opened.folder))
    return Noise(count_noise(law, _publishing(known, law)), said.method, caveats)


def noise_by(
    kind: str,
    negatives: str = "keep",
    rounding: int = 1,
    threshold: int = 0,
    keeps_zeros: bool = False,
    **parameters: object,
) -> Noise:
    """A law by its name, as ``noise_by("laplace", epsilon=0.5, bound=7)``; the rest is done before publication.

    ``negatives``: "keep", or "zero" where negative counts are published as zero.
    """
    wanted = _parameters(kind, parameters)
    law = named_law(wanted)
    if negatives not in list(Negatives):
        raise mistake("", "negatives", negatives, f"choose from {', '.join(Negatives)}")
    if isinstance(law, PTableLaw) and (negatives != Negatives.KEEP or keeps_zeros):
        raise mistake(
            "", "negatives or zeros", "given for cell-key noise", "leave them out: a p-table rules them"
        )
    rule = Publishing(negatives == Negatives.ZERO, rounding, threshold, keeps_zeros)
    given = ", ".join(f"{name} {value}" for name, value in wanted.given().items())
    return Noise(count_noise(law, rule), f"{kind} noise, {given}")


def _parameters(kind: str, given: Mapping[str, object]) -> NoiseParameters:
    names = [item.name for item in fields(NoiseParameters)]
    unknown = [name for name in given if name not in names]
    if unknown or kind not in list(LawKind):
        value, known = (unknown[0], names[1:]) if unknown else (kind, list(LawKind))
        raise mistake("", "parameter" if unknown else "kind", value, f"choose from {', '.join(known)}")
    return NoiseParameters(LawKind(kind), **given)  # type: ignore[arg-type]


def noise_of_ptable_file(path: str | Path) -> Noise:
    """The noise of the cell key method with a p-table from a file, in any of the known formats."""
    return Noise(
        noise_of_ptable(read_ptable(Path(path)).law()), f"the cell key method with {Path(path).name}"
    )


def noise_of_law(law: Law | Sequence[Mapping[int, float]], published: Publishing = Publishing()) -> Noise:
    """A law of the library, or rows change -> probability for true counts 0, 1, ..; the last serves all larger ones."""
    counts = noise_of_rows(law, published) if isinstance(law, Sequence) else count_noise(law, published)
    return Noise(counts, "a given law")


def _publishing(known: KnownNoise, law: Law) -> Publishing:
    if isinstance(law, PTableLaw):
        return Publishing()
    rule = known.published
    return Publishing(rule.negatives is Negatives.ZERO, rule.rounding, rule.threshold, known.keeps_zeros)


def _chosen(known: KnownNoise, cross_tabulation: str | None, folder: str) -> Law:
    """The law of a cross-tabulation; where they differ it must be named."""
    if cross_tabulation is not None and cross_tabulation in known.laws:
        return known.laws[cross_tabulation]
    if known.law is None or (cross_tabulation is None and known.laws):
        some = ", ".join(sorted(known.laws)[:5])
        remedy = f"name the cross-tabulation; different laws have {some}"
        raise mistake(folder, "noise", f"{len(known.laws)} cross-tabulations have other laws", remedy)
    return known.law


def _supposed(known: KnownNoise, folder: str, caveats: tuple[str, ...]) -> Noise:
    """The maximum-entropy p-table of the variance that is told, where the law itself is not."""
    if known.variance is None:
        remedy = "ask the office for its law or variance; without it nothing can be said of the noise"
        raise mistake(folder, "noise", "the release tells nothing of its law", remedy)
    bound = known.bound or SUPPOSED_BOUND
    table = solve(PTableParameters(bound, known.variance, 0))
    supposed = (
        f"the release tells a variance of at most {known.variance:g} and not its law: maximum-entropy noise of that "
        f"variance, at most {bound}, zeros kept, is supposed; intervals may be somewhat too wide"
    )
    return Noise(noise_of_ptable(table), f"{known.method} (law supposed)", (*caveats, supposed))
