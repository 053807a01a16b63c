"""Which law of noise the options of ``discreet risk bayes`` mean; it owns no formula."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from discreet.audit.published_law import PublishedLaw
from discreet.cli.noise_options import AnyLaw, ptable_law
from discreet.errors import mistake
from discreet.maths.bayes_risk import Rows
from discreet.maths.laws import AdditiveLaw, LawKind, discrete_gaussian, discrete_laplace
from discreet.maths.named_laws import NoiseParameters, named_law
from discreet.maths.row_laws import PTableLaw
from discreet.schema.noise import Negatives, PostProcessing


@dataclass(frozen=True)
class LawOptions:
    """What the options say of the noise."""

    rho: str | None = None
    epsilon: str | None = None
    ptable: Path | None = None
    kind: LawKind | None = None
    bound: int | None = None
    D: int | None = None
    V: float | None = None
    js: int | None = None

    def law(self) -> AnyLaw:
        """The law: by its kind, or the one that a single parameter means."""
        if self.kind is not None:
            if self.ptable is not None:
                raise mistake("", "--ptable or --kind", "both", "give one of them")
            wanted = NoiseParameters(
                self.kind, self.epsilon, self.bound, self.rho, D=self.D, V=self.V, js=self.js
            )
            return named_law(wanted)
        more = [name for name, value in (("--bound", self.bound), ("--D", self.D), ("--V", self.V), ("--js", self.js))
                if value is not None]  # fmt: skip
        if more:
            raise mistake("", ", ".join(more), "without a kind", "say with --kind which noise it is")
        return short_law(self.rho, self.epsilon, self.ptable)


def short_law(
    rho: str | None, epsilon: str | None, ptable: Path | None, prefix: str = "--"
) -> AdditiveLaw | PTableLaw:
    """Gaussian noise by its rho, geometric noise by its epsilon, or a p-table."""
    given = [value for value in (rho, epsilon, ptable) if value is not None]
    if len(given) != 1:
        names = f"{prefix}rho, {prefix}epsilon{' or --ptable' if prefix == '--' else ''}"
        raise mistake("", names, f"{len(given)} of them", "give one of them")
    if ptable is not None:
        return ptable_law(ptable)
    return discrete_gaussian(rho) if rho is not None else discrete_laplace(str(epsilon))


def as_published(law: AnyLaw, rule: PostProcessing) -> Rows:
    """The law of what is published; the noise itself where nothing is done to it."""
    if rule.rounding < 1 or rule.threshold < 0:
        value = f"{rule.rounding} and {rule.threshold}"
        raise mistake("", "--rounding and --threshold", value, "give at least 1 and 0")
    return law if rule == PostProcessing(Negatives.KEEP) else PublishedLaw(law, rule)
