"""What releases cost together: losses, their composition and their conversion; it keeps no books and draws no noise.

A loss is a bound on what the published numbers can tell about one unit, for declared neighbours. Losses are
Fractions and add up exactly; where a logarithm or a root is needed the result is a bound that errs toward
privacy (``maths.bounds``). Mixed releases of known noise are composed more tightly in ``maths.loss_distribution``.

References: Dwork & Roth 2014 (DR), *The algorithmic foundations of differential privacy*; Kairouz, Oh & Viswanath
2017 (KOV), *The composition theorem for differential privacy*; Bun & Steinke 2016 (BS), *Concentrated differential
privacy*; Rinott et al. 2018, section 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

from discreet.errors import Mistakes, mistake
from discreet.maths.bounds import exp_above, log_above, rounded_up, sqrt_above


class Neighbours(Enum):
    """Which two populations a guarantee compares."""

    ADD_REMOVE = "add-remove"  # one has a record more
    SUBSTITUTE = "substitute"  # one record has other values; the number of records is public

    @property
    def cells(self) -> int:
        """In how many cells of one cross-tabulation neighbours differ, by one in each."""
        return 2 if self is Neighbours.SUBSTITUTE else 1


class _Amounts:
    """Amounts of a loss: exact and not negative, so that no charge can refund another."""

    def __post_init__(self) -> None:
        for amount in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            object.__setattr__(self, amount.name, exact(getattr(self, amount.name), amount.name))

    def __str__(self) -> str:
        parts = ((part.name, getattr(self, part.name)) for part in fields(self))  # type: ignore[arg-type]
        return " ".join(f"{name}={amount.numerator}/{amount.denominator}" for name, amount in parts)


@dataclass(frozen=True)
class PureEpsilon(_Amounts):
    """Pure differential privacy: P(A) <= e^epsilon P'(A) for every event A and all neighbours."""

    epsilon: Fraction

    def times(self, count: int) -> PureEpsilon:
        """The same loss so many times, for instance once in each cell that a record touches."""
        return PureEpsilon(self.epsilon * count)

    def grouped(self, size: int) -> PureEpsilon:
        """The loss of a group (a household) of at most so many records: size * epsilon (DR theorem 2.2)."""
        return PureEpsilon(self.epsilon * _group(size))


@dataclass(frozen=True)
class EpsilonDelta(_Amounts):
    """Approximate differential privacy: P(A) <= e^epsilon P'(A) + delta."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta >= 1:
            raise mistake("", "delta", "a delta of 1 or more promises nothing", "keep delta far below 1")

    def times(self, count: int) -> EpsilonDelta:
        """The same loss so many times, for instance once in each cell that a record touches."""
        return EpsilonDelta(self.epsilon * count, self.delta * count)

    def grouped(self, size: int) -> EpsilonDelta:
        """The loss of a group: (k epsilon, delta (1 + e^epsilon + ... + e^((k-1) epsilon))), k = size.

        One record after the other is changed; each step multiplies the deltas so far by e^epsilon.
        """
        growth = sum(exp_above(step * self.epsilon) for step in range(1, _group(size)))
        return EpsilonDelta(self.epsilon * size, self.delta * (1 + growth))


@dataclass(frozen=True)
class Rho(_Amounts):
    """Zero-concentrated differential privacy: Renyi divergence of order a at most a * rho, for all a > 1."""

    rho: Fraction

    def times(self, count: int) -> Rho:
        """The same loss so many times, for instance once in each cell that a record touches."""
        return Rho(self.rho * count)

    def grouped(self, size: int) -> Rho:
        """The loss of a group (a household) of at most so many records: size^2 * rho (BS proposition 1.9)."""
        return Rho(self.rho * _group(size) ** 2)


PrivacyLoss = PureEpsilon | EpsilonDelta | Rho
AnyLoss = TypeVar("AnyLoss", bound=PrivacyLoss)
_KINDS: tuple[type[PrivacyLoss], ...] = (PureEpsilon, EpsilonDelta, Rho)


def exact(amount: object, name: str) -> Fraction:
    """Take a whole number or a Fraction that is not negative; a float is refused, since 0.1 is not 1/10."""
    if isinstance(amount, bool) or not isinstance(amount, int | Fraction):
        raise mistake("", name, f"{amount!r} is not exact", "write a Fraction, as in Fraction(1, 10)")
    if amount < 0:
        raise mistake("", name, f"{amount} is negative", "a loss is never negative, and none is refunded")
    return Fraction(amount)


def _group(size: int) -> int:
    if size < 1:
        raise mistake("", "group size", str(size), "declare the largest household, at least 1")
    return size


def read_loss(text: str) -> PrivacyLoss:
    """Read what ``str`` of a loss wrote, such as ``epsilon=1/3 delta=1/1000000``."""
    parts = dict(part.partition("=")[::2] for part in text.split(" "))
    try:
        amounts = [Fraction(value) for value in parts.values()]
    except (ValueError, ZeroDivisionError):
        amounts = []
    for kind in _KINDS:
        if amounts and list(parts) == [part.name for part in fields(kind)]:
            return kind(*amounts)
    raise mistake("", "loss", "cannot be read", f"write one of {', '.join(map(_form, _KINDS))}")


def _form(kind: type[Any]) -> str:
    return " ".join(f"{part.name}=n/d" for part in fields(kind))


def stated_as(loss: PrivacyLoss, kind: type[AnyLoss]) -> AnyLoss:
    """State a loss in another kind that it implies.

    epsilon is (epsilon, 0); epsilon is rho = epsilon^2/2 (BS proposition 1.4). The ways back need a delta and are not
    additive, so they are not taken silently: see ``maths.concentrated``.
    """
    implied: list[PrivacyLoss] = [loss]
    if isinstance(loss, PureEpsilon):
        implied += [EpsilonDelta(loss.epsilon, Fraction(0)), Rho(loss.epsilon**2 / 2)]
    for statement in implied:
        if isinstance(statement, kind):
            return statement
    raise _other_kind(loss, kind)


def _other_kind(loss: PrivacyLoss, kind: type[Any]) -> Mistakes:
    value = f"a loss stated as {_form(type(loss))} does not add up in {_form(kind)}"
    return mistake("", "loss", value, "state it in the kind of the budget, or keep a budget of its kind")


def basic(losses: Iterable[PrivacyLoss], kind: type[AnyLoss]) -> AnyLoss:
    """Compose by adding up, in one kind; it holds for releases that are chosen one after the other, too.

    Epsilons add (DR theorem 3.14), epsilons and deltas add (DR theorem 3.16, Rinott et al. theorem 7.1), rhos add
    (BS lemma 1.7).
    """
    stated = [stated_as(loss, kind) for loss in losses]
    return kind(*(sum((getattr(loss, part.name) for loss in stated), Fraction(0)) for part in fields(kind)))


def within(total: PrivacyLoss, budget: PrivacyLoss) -> bool:
    """Whether every amount of the total is at most that of the budget, which is of the same kind."""
    if type(total) is not type(budget):
        raise _other_kind(total, type(budget))
    return all(getattr(total, part.name) <= getattr(budget, part.name) for part in fields(budget))


def advanced(losses: Sequence[PureEpsilon | EpsilonDelta], slack: Fraction) -> EpsilonDelta:
    """Compose losses of different sizes for a further delta, the slack (KOV theorem 3.5).

    delta = 1 - (1 - slack) prod(1 - delta_l), and epsilon is the least of
      sum e_l,
      sum e_l tanh(e_l/2) + sqrt(2 sum e_l^2 log(1/slack)),
      sum e_l tanh(e_l/2) + sqrt(2 sum e_l^2 log(e + sqrt(sum e_l^2)/slack)).
    """
    if not 0 < slack < 1:
        raise mistake("", "slack", str(slack), "give the further delta, above 0 and far below 1")
    stated = [stated_as(loss, EpsilonDelta) for loss in losses]
    epsilons = [loss.epsilon for loss in stated]
    squares = sum((epsilon**2 for epsilon in epsilons), Fraction(0))
    drift = sum((epsilon * (1 - 2 / (exp_above(epsilon) + 1)) for epsilon in epsilons), Fraction(0))
    logs = (log_above(1 / slack), log_above(exp_above(Fraction(1)) + sqrt_above(squares) / slack))
    delta = 1 - (1 - slack) * math.prod((1 - loss.delta for loss in stated), start=Fraction(1))
    epsilon = min(sum(epsilons, Fraction(0)), rounded_up(drift + sqrt_above(2 * squares * min(logs))))
    return EpsilonDelta(epsilon, delta)
