"""Privacy losses, their composition and conversion, in Fractions rounded toward privacy."""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import Mistakes, mistake

_LONGEST = 2000  # digits of a number in an amount that was written
_DIGITS = 50
_LARGE = 1000  # an epsilon whose tanh is 1 to all digits
_LEAST, _MOST = (
    -400,
    9999,
)  # powers of ten; smaller numbers are bounded by multiples of 1e-449, which keeps them short


def _context(rounding: str, digits: int = _DIGITS) -> decimal.Context:
    return decimal.Context(digits, rounding, _LEAST, _MOST)


_DOWN, _UP = _context(decimal.ROUND_FLOOR), _context(decimal.ROUND_CEILING)


def _decimal(x: Fraction, context: decimal.Context) -> decimal.Decimal:
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def exp_below(x: Fraction) -> Fraction:
    """A Fraction that is at most exp(x)."""
    return Fraction(_DOWN.next_minus(_DOWN.exp(_decimal(x, _DOWN))))


def exp_above(x: Fraction) -> Fraction:
    """A Fraction that is at least exp(x)."""
    return Fraction(_UP.next_plus(_UP.exp(_decimal(x, _UP))))


def log_below(x: Fraction) -> Fraction:
    """A Fraction that is at most log(x), for x > 0."""
    return Fraction(_DOWN.next_minus(_DOWN.ln(_decimal(x, _DOWN))))


def log_above(x: Fraction) -> Fraction:
    """A Fraction that is at least log(x), for x > 0."""
    return Fraction(_UP.next_plus(_UP.ln(_decimal(x, _UP))))


def sqrt_above(x: Fraction) -> Fraction:
    """A Fraction that is at least the square root of x >= 0."""
    return Fraction(_UP.next_plus(_UP.sqrt(_decimal(x, _UP)))) if x else Fraction(0)


def rounded_up(x: Fraction, digits: int = _DIGITS) -> Fraction:
    """A Fraction with this many significant decimal digits that is at least x."""
    return Fraction(_decimal(x, _context(decimal.ROUND_CEILING, digits)))


def float_above(x: Fraction) -> float:
    """The smallest float that is at least x: how a loss is reported."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


class Neighbours(Enum):
    """Which two populations a guarantee compares."""

    ADD_REMOVE = "add-remove"  # one has one record more
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

    if TYPE_CHECKING:

        def __init__(self, epsilon: int | Fraction) -> None: ...

    def times(self, count: int) -> PureEpsilon:
        """The same loss ``count`` times, for instance once in each cell that a record touches."""
        return PureEpsilon(self.epsilon * count)

    def grouped(self, size: int) -> PureEpsilon:
        """The loss of a group (a household) of at most ``size`` records: size * epsilon (Dwork & Roth 2014)."""
        return PureEpsilon(self.epsilon * _group(size))


@dataclass(frozen=True)
class EpsilonDelta(_Amounts):
    """Approximate differential privacy: P(A) <= e^epsilon P'(A) + delta."""

    epsilon: Fraction
    delta: Fraction

    if TYPE_CHECKING:

        def __init__(self, epsilon: int | Fraction, delta: int | Fraction) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta >= 1:
            raise mistake("", "delta", "a delta of 1 or more promises nothing", "keep delta far below 1")

    def times(self, count: int) -> EpsilonDelta:
        """The same loss ``count`` times, for instance once in each cell that a record touches."""
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

    if TYPE_CHECKING:

        def __init__(self, rho: int | Fraction) -> None: ...

    def times(self, count: int) -> Rho:
        """The same loss ``count`` times, for instance once in each cell that a record touches."""
        return Rho(self.rho * count)

    def grouped(self, size: int) -> Rho:
        """The loss of a group (a household) of at most ``size`` records: size^2 * rho (Bun & Steinke 2016)."""
        return Rho(self.rho * _group(size) ** 2)


PrivacyLoss = PureEpsilon | EpsilonDelta | Rho
# Noise that is pure on paper is drawn from 128-bit integers, which costs a delta of about 2^-120 for each cell that one
# record changes. A delta up to this is that of arithmetic: always stated and added up, and it needs no declaration.
ARITHMETIC = Fraction(1, 10**18)
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
    amounts = read_amounts(parts.values())
    for kind in _KINDS:
        if amounts and list(parts) == [part.name for part in fields(kind)]:
            return kind(*amounts)
    raise mistake("", "loss", "cannot be read", f"write one of {', '.join(map(_form, _KINDS))}")


def read_amounts(texts: Iterable[str]) -> list[Fraction]:
    """Read amounts that were written as n or n/d; none where one of them is not."""
    written = list(texts)
    if not all(map(_is_written, written)):
        return []
    return [Fraction(text) for text in written]


def _is_written(text: str) -> bool:
    """Whether a text is n or n/d, as ``str`` writes an amount."""
    parts = text.split("/")
    digits = all(part.isascii() and part.isdigit() and len(part) <= _LONGEST for part in parts)
    return digits and (len(parts) == 1 or (len(parts) == 2 and bool(parts[1].strip("0"))))


def _form(kind: type[Any]) -> str:
    return " ".join(f"{part.name}=n/d" for part in fields(kind))


def stated_as(loss: PrivacyLoss, kind: type[AnyLoss]) -> AnyLoss:
    """State a loss in another kind that it implies.

    epsilon is (epsilon, 0); epsilon is rho = epsilon^2/2 (Bun & Steinke 2016, proposition 1.4). The ways back need a
    delta and are not additive, so they are not taken silently: see ``epsilon_of_rho``.
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
    return mistake("", "loss", value, "state it in the kind of the budget, or declare a budget of its kind")


def basic(losses: Iterable[PrivacyLoss], kind: type[AnyLoss]) -> AnyLoss:
    """Compose by adding up, in one kind; it is also valid for releases that are chosen one after the other.

    Epsilons add, epsilons and deltas add (Dwork & Roth 2014; Rinott et al. 2018, theorem 7.1), rhos add (Bun & Steinke
    2016).
    """
    stated = [stated_as(loss, kind) for loss in losses]
    return kind(*(sum((getattr(loss, part.name) for loss in stated), Fraction(0)) for part in fields(kind)))


def within(total: PrivacyLoss, budget: PrivacyLoss) -> bool:
    """Whether every amount of the total is at most that of the budget, which is of the same kind."""
    if type(total) is not type(budget):
        raise _other_kind(total, type(budget))
    return all(getattr(total, part.name) <= getattr(budget, part.name) for part in fields(budget))


def advanced(losses: Sequence[PureEpsilon | EpsilonDelta], slack: Fraction) -> EpsilonDelta:
    """Compose losses of different sizes for a further delta, the slack (Kairouz, Oh & Viswanath 2017).

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
    drift = sum((epsilon * _tanh_above(epsilon) for epsilon in epsilons), Fraction(0))
    logs = (log_above(1 / slack), log_above(exp_above(Fraction(1)) + sqrt_above(squares) / slack))
    delta = 1 - (1 - slack) * math.prod((1 - loss.delta for loss in stated), start=Fraction(1))
    epsilon = min(sum(epsilons, Fraction(0)), rounded_up(drift + sqrt_above(2 * squares * min(logs))))
    return EpsilonDelta(epsilon, delta)


def _tanh_above(epsilon: Fraction) -> Fraction:
    """A Fraction that is at least tanh(epsilon/2) = 1 - 2/(e^epsilon + 1)."""
    return 1 - 2 / (exp_above(epsilon) + 1) if epsilon < _LARGE else Fraction(1)


def advanced_delta(losses: Sequence[PureEpsilon | EpsilonDelta], epsilon: Fraction) -> Fraction:
    """The smallest delta for which ``advanced`` gives at most this epsilon, rounded up; 1 or more where none does.

    With s = sum e_l^2, d the drift and t = (epsilon - d)^2/(2 s) the slack is the smaller of e^-t and
    sqrt(s)/(e^t - e); the deltas of the losses are added to it.
    """
    counted = Counter(stated_as(loss, EpsilonDelta) for loss in losses)
    squares = sum((times * loss.epsilon**2 for loss, times in counted.items()), Fraction(0))
    drift = sum(
        (times * loss.epsilon * _tanh_above(loss.epsilon) for loss, times in counted.items()),
        Fraction(0),
    )
    own = sum((times * loss.delta for loss, times in counted.items()), Fraction(0))
    if not 0 < drift < epsilon:
        return Fraction(1)
    t = (epsilon - drift) ** 2 / (2 * squares)
    slack, above = exp_above(-t), exp_below(t) - exp_above(Fraction(1))
    return own + (min(slack, sqrt_above(squares) / above) if above > 0 else slack)


def epsilon_of_rho_as_published(rho: Fraction, delta: Fraction) -> float:
    """epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke 2016, proposition 1.3), as offices publish it."""
    _between(delta)
    return float_above(rho + 2 * sqrt_above(rho * log_above(1 / delta)))


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> float:
    """The least epsilon over orders a > 1 for which rho-zCDP implies (epsilon, delta) (Canonne, Kamath & Steinke 2020).

    epsilon(a) = a rho + (log(1/delta) + (a - 1) log(1 - 1/a) - log a)/(a - 1). It holds for every a, so that a is
    searched for in floats and the formula is then evaluated at that a with certainty.
    """
    _between(delta)
    if rho == 0:
        return 0.0
    r, need = float(rho), -_log(delta)
    a = _best_order(
        lambda x: (1 + x) * r + (need - math.log1p(x)) / x - math.log1p(1 / x), start=math.sqrt(need / r)
    )
    epsilon = a * rho + (log_above(1 / delta) - log_below(a)) / (a - 1) + log_above(1 - 1 / a)
    return float_above(max(epsilon, Fraction(0)))


def epsilon_of_drawn_rho(rho: Fraction, delta: Fraction, distance: Fraction) -> float:
    """The epsilon at delta of noise whose total-variation distance to rho-zCDP noise is at most ``distance``.

    With p, q the probabilities of an event for two neighbours, and p', q' those under the ideal noise,
    p <= p' + d <= e^epsilon q' + delta' + d <= e^epsilon (q + d) + delta' + d: delta = delta' + (1 + e^epsilon) d.
    The epsilon at delta/2 is larger than the result, so that the term is not understated.
    """
    _between(delta)
    added = (1 + exp_above(Fraction(epsilon_of_rho(rho, delta / 2)))) * distance
    if added > delta / 2:
        value = f"{float(delta):.3g} is below what the sampler itself adds at this rho"
        raise mistake(
            "", "delta", value, "declare a larger delta, or none: the guarantee is then stated in rho"
        )
    return epsilon_of_rho(rho, delta - added)


def delta_of_rho(rho: Fraction, epsilon: Fraction) -> float:
    """The least delta over orders a > 1 for which rho-zCDP implies (epsilon, delta) (Canonne, Kamath & Steinke 2020).

    delta(a) = exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1).
    """
    if rho == 0:
        return 0.0
    r, e = float(rho), float(epsilon)
    a = _best_order(
        lambda x: x * ((1 + x) * r - e) - (1 + x) * math.log1p(1 / x) - math.log(x),
        start=max(e / (2 * r), 1.0),
    )
    exponent = (a - 1) * (a * rho - epsilon) + a * log_above(1 - 1 / a) - log_below(a - 1)
    return float_above(min(exp_above(exponent), Fraction(1)))


def delta_of_rho_as_published(rho: Fraction, epsilon: Fraction) -> float:
    """delta = exp(-(epsilon - rho)^2/(4 rho)), solving ``epsilon_of_rho_as_published`` for delta."""
    if rho == 0:
        return 0.0
    return 1.0 if epsilon <= rho else float_above(exp_above(-((epsilon - rho) ** 2) / (4 * rho)))


def largest_rho(
    epsilon: Fraction,
    delta: Fraction,
    digits: int,
    converted: Callable[[Fraction, Fraction], float] = epsilon_of_rho,
) -> Fraction:
    """The largest rho, cut to ``digits`` digits, that a conversion states as at most this epsilon at this delta."""
    low, high = -20.0, math.log10(float(epsilon))  # rho <= epsilon(rho)
    for _ in range(50):
        middle = (low + high) / 2
        if converted(Fraction(10**middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    unit = Fraction(10) ** (math.floor(low) - digits + 1)
    return math.floor(Fraction(10**low) / unit) * unit


RHO_DIGITS = 8  # of a rho that is reported


@dataclass(frozen=True)
class Converted:
    """One of rho, epsilon and delta from the others: as published (Bun & Steinke 2016), and by the tighter formula."""

    what: str
    published: float
    tighter: float  # Canonne, Kamath & Steinke 2020


def converted(rho: Fraction | None, epsilon: Fraction | None, delta: Fraction | None) -> Converted:
    """The third of rho, epsilon and delta; a pure epsilon by itself implies rho = epsilon^2 / 2."""
    if rho is not None and delta is not None and epsilon is None:
        return Converted("epsilon", epsilon_of_rho_as_published(rho, delta), epsilon_of_rho(rho, delta))
    if rho is not None and epsilon is not None and delta is None:
        if epsilon < 0:
            raise mistake("", "epsilon", str(epsilon), "give a number of at least 0")
        return Converted("delta", delta_of_rho_as_published(rho, epsilon), delta_of_rho(rho, epsilon))
    if rho is None and epsilon is not None and delta is not None:
        published = largest_rho(epsilon, delta, RHO_DIGITS, epsilon_of_rho_as_published)
        return Converted("rho", float(published), float(largest_rho(epsilon, delta, RHO_DIGITS)))
    if rho is None and epsilon is not None:
        return Converted("rho", float(epsilon**2 / 2), float(epsilon**2 / 2))
    value = "too few" if None in (rho, epsilon, delta) else "all three"
    raise mistake("", "rho, epsilon, delta", value, "give two of them, or epsilon by itself")


def epsilon_delta_of_rho(loss: Rho, delta: Fraction) -> EpsilonDelta:
    """State a zCDP loss as (epsilon, delta), for a statement or a budget of that kind."""
    return EpsilonDelta(Fraction(epsilon_of_rho(loss.rho, delta)), delta)


def _between(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise mistake("", "delta", str(delta), "zCDP implies an epsilon only for a delta above 0 and below 1")


def _log(x: Fraction) -> float:
    return float(log_below(x))


def _best_order(objective: Callable[[float], float], start: float) -> Fraction:
    """The order a = 1 + x whose objective, which falls and then rises, is least: ternary search on the log scale."""
    low, high = math.log(start) - 8.0, math.log(start) + 8.0
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if objective(math.exp(left)) <= objective(math.exp(right)):
            high = right
        else:
            low = left
    return 1 + Fraction(math.exp(low))
