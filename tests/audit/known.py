"""What an outsider knows of a noise, by the few facts that an attack looks at."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.publishing import Publishing
from discreet.perturb.noise import Noise
from discreet.programme.noise import NO_NEGATIVES, Draw, KeptZeros


def known(
    same_noise: bool,
    keeps_zeros: bool,
    variance: float | None = None,
    bound: int | None = None,
    law: Law | None = None,
    laws: Mapping[str, Law] | None = None,
    publishing: Publishing = NO_NEGATIVES,
) -> Noise:
    """Noise of some kind; whose it is does not matter to attacks."""
    return Noise(
        kind=LawKind.CELL_KEY if same_noise and keeps_zeros else LawKind.GEOMETRIC,
        drawing=Draw.PARTICIPANTS if same_noise else Draw.DESCRIPTION,
        zeros=KeptZeros.ALL if keeps_zeros else KeptZeros.STRUCTURAL,
        variance=variance,
        bound=bound,
        law=law,
        laws=laws or {},
        publishing=publishing,
    )
