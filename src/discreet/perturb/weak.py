"""The refusal of noise below any protection, the same for a p-table and for noise with a guarantee."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.errors import Problem
from discreet.maths.attacks.weak import MOST_TRUE, TrueCount, surest_small_count
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise
from discreet.programme.programme import Programme


def weak_problems(programme: Programme, chosen: Mechanism) -> Iterator[Problem]:
    """The problem of noise by which a small published count is nearly always the true one, unless that is accepted."""
    if programme.noise.allow_weak:
        return
    found = weakness(chosen.noise())
    if found is not None and found.chance > MOST_TRUE:
        value = f"a published count of {found.published} is the true one with probability {found.chance:.4g}"
        remedy = (
            f"use more noise, so that it is at most {MOST_TRUE}, or accept it with noise.allow_weak = true"
        )
        yield Problem(str(programme.path), "noise", value, remedy)


def weakness(noise: Noise) -> TrueCount | None:
    """The surest small count, by the cross-tabulation with the most noise; None where no law is known."""
    laws = {id(law): law for law in (noise.law, *noise.laws.values()) if law is not None}
    found = (surest_small_count(noise.published(law)) for law in laws.values())
    return min(found, key=lambda one: one.chance, default=None)
