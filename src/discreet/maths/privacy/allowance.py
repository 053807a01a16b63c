"""Budgets that are charged step by step: what is spent, what may still be charged, by basic or advanced composition.

Charges of an account are chosen one after the other in view of what was published before: which, how many and how
large. A sum is then a valid rule for when to stop (a privacy filter; Rogers, Roth, Ullman & Vadhan 2016), and so is
advanced composition in this form (Whitehouse, Ramdas, Rogers & Wu 2023): with s = sum e_m^2 and a slack that is fixed
beforehand, s/2 + sqrt(2 s log(1/slack)) <= epsilon. Proof: e_m-DP gives E exp(l L_m) <= exp(l (l + 1) e_m^2 / 2) for
the loss L_m of step m, whatever came before, so that exp(l L - l (l + 1) s / 2) is a supermartingale although every
e_m is chosen from the past; stopped while s <= S, P(L > epsilon) <= exp(-l epsilon + l (l + 1) S / 2), which is the
slack at the best l. On paths on which the e_m sum to at most epsilon the loss cannot exceed it, so that the smaller of
both bounds may be used. Composing privacy-loss distributions until a budget is reached is no such rule: which
distribution is composed would depend on earlier outcomes.

A pure budget accepts losses with a delta of arithmetic: their deltas are added up like any others (basic composition),
and all of them together may reach ``ARITHMETIC``. What such an account promises is (epsilon, ARITHMETIC).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction

from discreet.errors import mistake
from discreet.maths.privacy.accounting import (
    ARITHMETIC,
    EpsilonDelta,
    PrivacyLoss,
    PureEpsilon,
    basic,
    log_above,
    read_amounts,
    read_loss,
    rounded_up,
    sqrt_above,
    stated_as,
    within,
)
from discreet.maths.privacy.amounts import readable
from discreet.maths.privacy.composition import Composition

SLACK = Fraction(
    1, 2
)  # of the budget's delta pays for advanced composition; the other half for the charges' own deltas
SHOWN_DIGITS = 12  # of a composed epsilon, rounded up
UNIT = Fraction(1, 10**6)  # what is left is rounded down to a multiple of this
_SUMS = ("epsilons", "squares", "deltas")


@dataclass(frozen=True)
class AdvancedSum:
    """The sums that advanced composition needs: of all epsilons, of their squares, and of all deltas."""

    epsilons: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)
    deltas: Fraction = Fraction(0)

    def plus(self, charge: EpsilonDelta) -> AdvancedSum:
        """With one more charge."""
        return AdvancedSum(
            self.epsilons + charge.epsilon, self.squares + charge.epsilon**2, self.deltas + charge.delta
        )

    def __str__(self) -> str:
        parts = ((part.name, getattr(self, part.name)) for part in fields(self))
        return " ".join(f"{name}={amount.numerator}/{amount.denominator}" for name, amount in parts)


Spent = PrivacyLoss | AdvancedSum


@dataclass(frozen=True)
class Allowance:
    """A budget and how charges against it are composed."""

    budget: PrivacyLoss
    composition: Composition = Composition.BASIC

    def __post_init__(self) -> None:
        if self.composition is Composition.PLD:
            value = "pld for an account whose charges are chosen one after the other"
            remedy = 'no rule for stopping is valid for it: use advanced, or noise.composition = "pld" in a release'
            raise mistake("", "composition", value, remedy)
        if self.composition is Composition.ADVANCED and not (
            isinstance(self.budget, EpsilonDelta) and self.budget.delta
        ):
            remedy = "give a budget of epsilon and of delta above 0; rhos add up exactly and need no other composition"
            raise mistake("", "composition", "advanced without a delta", remedy)

    def nothing(self) -> Spent:
        """What is spent before the first charge."""
        return AdvancedSum() if self._is_advanced else basic([], type(self.budget))

    def plus(self, spent: Spent, charge: PrivacyLoss) -> Spent:
        """What is spent after one more charge."""
        if isinstance(spent, AdvancedSum):
            return spent.plus(stated_as(charge, EpsilonDelta))
        pure = isinstance(self.budget, PureEpsilon) and any(
            isinstance(one, EpsilonDelta) for one in (spent, charge)
        )
        return basic([spent, charge], EpsilonDelta if pure else type(self.budget))

    def allows(self, spent: Spent) -> bool:
        """Whether all that is spent is within the budget, of a pure one with what arithmetic may cost."""
        total, budget = self.stated(spent), self.budget
        if isinstance(budget, PureEpsilon) and isinstance(total, EpsilonDelta):
            return within(total, EpsilonDelta(budget.epsilon, ARITHMETIC))
        return within(total, budget)

    def raised(self, budget: PrivacyLoss) -> Allowance:
        """The allowance with a larger budget of the same kind; a pure one may also get a delta.

        Charges add up to at most the raised budget, so that it bounds the loss as if it had been declared first. The
        slack of advanced composition must be fixed before the first charge, so that such a budget is never raised.
        """
        if self._is_advanced:
            value = "a budget with advanced composition"
            remedy = "its proof needs a budget that is fixed before the first charge: open another account"
            raise mistake("", "budget", value, remedy)
        same = type(budget) is type(self.budget)
        if not same and not (isinstance(self.budget, PureEpsilon) and isinstance(budget, EpsilonDelta)):
            value = f"{readable(budget)} for an account of {readable(self.budget)}"
            raise mistake("", "budget", value, "give the amounts that the account has, or open another one")
        now = stated_as(self.budget, type(budget))
        if not within(now, budget) or now == budget:
            value = f"{readable(budget)} instead of {readable(self.budget)}"
            raise mistake(
                "", "budget", value, "give the new budget, which must be larger than the present one"
            )
        return Allowance(budget, self.composition)

    def stated(self, spent: Spent) -> PrivacyLoss:
        """The loss of all charges together, rounded up; without a charge nothing is spent."""
        if isinstance(spent, PureEpsilon) and isinstance(self.budget, EpsilonDelta):
            return stated_as(spent, EpsilonDelta)  # charged before the budget had a delta
        if not isinstance(spent, AdvancedSum):
            return spent
        if not spent.epsilons and not spent.deltas:
            return EpsilonDelta(Fraction(0), Fraction(0))
        s = spent.squares
        drift = rounded_up(s / 2 + sqrt_above(2 * s * log_above(1 / self._slack)), SHOWN_DIGITS)
        return EpsilonDelta(min(spent.epsilons, drift), min(self._slack + spent.deltas, 1 - UNIT))

    def left(self, spent: Spent) -> PrivacyLoss:
        """The largest single charge that is still within the budget, rounded down where composition is advanced."""
        if not isinstance(spent, AdvancedSum):
            left = (
                getattr(self.budget, part.name) - getattr(spent, part.name, Fraction(0))
                for part in fields(self.budget)
            )
            return type(self.budget)(*left)
        whole = stated_as(self.budget, EpsilonDelta)
        low, high = 0, int(whole.epsilon / UNIT) + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = self.allows(spent.plus(EpsilonDelta(middle * UNIT, Fraction(0))))
            low, high = (middle, high) if fits else (low, middle)
        return EpsilonDelta(low * UNIT, max(whole.delta - self._slack - spent.deltas, Fraction(0)))

    def read(self, text: str) -> Spent:
        """Read what ``str`` of something spent wrote."""
        if not self._is_advanced:
            return read_loss(text)
        parts = dict(part.partition("=")[::2] for part in text.split(" "))
        amounts = read_amounts(parts.values())
        if tuple(parts) != _SUMS or not amounts:
            raise mistake("", "total", "cannot be read", f"write {' '.join(f'{name}=n/d' for name in _SUMS)}")
        return AdvancedSum(*amounts)

    def __str__(self) -> str:
        return (
            f"{self.budget} composition={self.composition.value}" if self._is_advanced else str(self.budget)
        )

    @property
    def _is_advanced(self) -> bool:
        return self.composition is Composition.ADVANCED

    @property
    def _slack(self) -> Fraction:
        return stated_as(self.budget, EpsilonDelta).delta * SLACK


def read_allowance(text: str) -> Allowance:
    """Read what ``str`` of an allowance wrote."""
    loss, separator, composition = text.partition(" composition=")
    if separator and composition != Composition.ADVANCED:
        raise mistake("", "composition", "cannot be read", "write advanced, or nothing")
    return Allowance(read_loss(loss), Composition(composition) if separator else Composition.BASIC)
