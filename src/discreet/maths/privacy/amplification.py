"""Amplification by sampling: what a guarantee for a sample means for the population it was drawn from.

Let M be (epsilon, delta)-private for neighbouring samples. For an attacker who does not know the sample, M on the
sample is (epsilon', q delta)-private for neighbouring populations, with

    epsilon' = log(1 + q (e^epsilon - 1)),

- for Poisson sampling, where each unit is in the sample with probability q independently of all others, neighbours
  by adding or removing one (Balle, Barthe & Gaboardi 2018);
- for a sample of fixed size without replacement, q of the population, neighbours by substitution (as there).

What is protected must be what is sampled. In a sample of households a person who is added changes what a sampled
household adds, and an outcome that only a sampled household makes likely loses the whole epsilon; in a sample of
persons a household is there if any member is.

A sample is drawn once: releases from the same sample are composed first and amplified together afterwards, since the
sum of amplified losses is smaller than the amplified sum (epsilon' is convex and 0 at 0). A ledger therefore charges
epsilon, not epsilon'.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import mistake
from discreet.maths.privacy.accounting import EpsilonDelta, exp_above, log_above, rounded_up

DIGITS = 12  # of the amplified epsilon, rounded up


def amplified(loss: EpsilonDelta, rate: Fraction) -> EpsilonDelta:
    """The loss of the population for a sample of this rate; the epsilon is rounded up, and never above that of M."""
    if not 0 < rate <= 1:
        raise mistake(
            "", "rate", str(rate), "give the share of the population in the sample, above 0 and up to 1"
        )
    epsilon = rounded_up(log_above(1 + rate * (exp_above(loss.epsilon) - 1)), DIGITS)
    return EpsilonDelta(min(epsilon, loss.epsilon), rate * loss.delta)
