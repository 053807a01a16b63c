"""Recomputes the guarantee of a certificate, by code of its own: decimals and Fractions, nothing else of Discreet.

An auditor needs to read only this page. A law is p(v) proportional to exp(-a abs(v) - b v^2), or for Hellinger-type
noise of the count i, p(j) proportional to exp(-c abs(sqrt j - sqrt i)), or of the exponential mechanism, proportional
to exp(epsilon u(i, j)/(2 D)) with D the largest difference of u between neighbours (exp(epsilon u/D) where u is of the
change). What is drawn are its integer thresholds floor(F(v) 2^128). The deltas of cross-tabulations add up, or they are
composed as the certificate states.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

UNIT = 2**128
GAUSSIAN = "discrete-gaussian"
DIGITS = 120  # of decimals
NEGLIGIBLE = Decimal(10) ** -85  # of all probability; a threshold is a multiple of 2^-128
NEAR = Decimal(10) ** -40  # a threshold that is nearer to a whole number could not be told from it
FIRST_ROWS = (
    4  # counts 0 to 3, of laws that depend on the count: neighbouring counts differ most where they are small
)
MOST_OUTCOMES = 200_000  # of steps with different losses together
MOST_VALUES = 1 << 21  # of one law; no release has more
MOST_STEPS = 1 << 27  # values times changes that are compared for one cross-tabulation
MOST_CHANGES = 1 << 11  # of one record, where each of them is a step of its own
_MATH = Context(prec=DIGITS)
_DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR)

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A law as whole numbers: how many of the 2^128 words give each value, from the first on."""

    first: int
    numbers: tuple[int, ...]

    def digest(self) -> str:
        """The SHA-256 of the first value and the thresholds, as JSON."""
        return digest_of(self.first, list(accumulate(self.numbers))[:-1])

    def delta(self, other: Table, epsilon: Fraction, shift: int = 0) -> Fraction:
        """The largest sum of what exceeds e^epsilon times the other's, in both directions; e^epsilon rounded down."""
        low = min(self.first, other.first + shift)
        high = max(self.first + len(self.numbers), other.first + shift + len(other.numbers))
        ours = [_at(self, value) for value in range(low, high)]
        theirs = [_at(other, value - shift) for value in range(low, high)]
        factor = Fraction(_DOWN.next_minus(_DOWN.exp(_decimal(epsilon, _DOWN))))
        return max(_excess(ours, theirs, factor), _excess(theirs, ours, factor)) / UNIT


def digest_of(first: int, thresholds: Sequence[int]) -> str:
    """The SHA-256 of a first value and thresholds, as JSON."""
    return hashlib.sha256(json.dumps([first, *map(str, thresholds)]).encode()).hexdigest()


def law_table(kind: str, parameter: Fraction, bound: int | None, first: int, last: int) -> Table:
    """The thresholds of additive noise from its formula, from first to last; the ends take what is beyond."""
    linear, quadratic = {
        "geometric": (parameter, Fraction(0)),
        "laplace": (parameter, Fraction(0)),
        "normal": (Fraction(0), parameter / (2 * (bound or 1) - 1)),
        "discrete-gaussian": (Fraction(0), parameter),
    }[kind]
    _require_few(last - first)
    with localcontext(_MATH):
        half = _half(linear, quadratic, bound)
        sums = list(accumulate(reversed(half[1:])))  # over abs(v) >= the last, the last but one, .., 1
        total = 1 + 2 * sums[-1]
        below = {-value: part / total for value, part in zip(range(len(sums), 0, -1), sums, strict=True)}
        beneath = {value: _floor(share) for value, share in below.items()}
        # F(v) = 1 - F(-v-1), and neither is a whole number of units
        thresholds = [
            beneath.get(value, 0) if value < 0 else UNIT - 1 - beneath.get(-value - 1, 0)
            for value in range(first, last)
        ]
    return Table(first, tuple(b - a for a, b in pairwise((0, *thresholds, UNIT))))


def row_table(parameter: Fraction, count: int, last: int) -> Table:
    """The thresholds of Hellinger-type noise of one count, for published values from 0 to last."""
    _require_few(max(last, int(_width(parameter / 2, Fraction(0)) + math.sqrt(count)) ** 2))
    with localcontext(_MATH):
        c, root = _decimal(parameter / 2, _MATH), Decimal(count).sqrt()
        weights: list[Decimal] = []
        while len(weights) <= last or weights[-1] > NEGLIGIBLE:
            weights.append((-c * abs(Decimal(len(weights)).sqrt() - root)).exp())
        cumulative = list(accumulate(weights))
        inner = [_floor(part / cumulative[-1]) for part in cumulative[:last]]
    return Table(0, tuple(b - a for a, b in pairwise((0, *inner, UNIT))))


def utility_table(rows: Sequence[Document], parameter: Fraction, count: int) -> Table:
    """The thresholds of the exponential mechanism for one count; the last row, moved along, serves larger ones."""
    listed = [(row["first"], [Fraction(u) for u in row["utilities"]]) for row in rows]
    listed.append((listed[-1][0] + 1, listed[-1][1]))
    scale = max(
        abs(u[b - at] - w[b - on])
        for (at, u), (on, w) in pairwise(listed)
        for b in range(max(at, on), min(at + len(u), on + len(w)))
    )
    first, values = listed[count]
    eta = parameter / (scale * (1 if len(rows) == 1 else 2)) if scale else Fraction(0)
    with localcontext(_MATH):
        weights = [_decimal(eta * (u - max(values)), _MATH).exp() for u in values]
        cumulative = list(accumulate(weights))
        inner = [_nearly_floor(part / cumulative[-1]) for part in cumulative[:-1]]
    return Table(first, tuple(b - a for a, b in pairwise((0, *inner, UNIT))))


def _nearly_floor(share: Decimal) -> int:
    """The floor of a share of all words, or the whole number too near to it; never all of them."""
    scaled = share * UNIT
    nearest = int(scaled.to_integral_value())
    whole = nearest if abs(scaled - nearest) < NEAR else int(scaled.to_integral_value(ROUND_FLOOR))
    return min(whole, UNIT - 1)


def _half(linear: Fraction, quadratic: Fraction, bound: int | None) -> list[Decimal]:
    """exp(-h(v)) for v = 0, 1, .. up to the bound, or until it is negligible."""
    _require_few(_width(linear, quadratic) if bound is None else bound)
    ratio = (-_decimal(linear + quadratic, _MATH)).exp()
    step = (-_decimal(2 * quadratic, _MATH)).exp()
    weights = [Decimal(1)]
    while len(weights) <= bound if bound is not None else weights[-1] > NEGLIGIBLE:
        weights.append(weights[-1] * ratio)
        ratio *= step
    return weights


class TooMuch(Exception):
    """A number that no release has: recomputing what it claims would not end."""


def _require_few(number: float, most: int = MOST_VALUES) -> None:
    if number > most:
        raise TooMuch


def _width(linear: Fraction, quadratic: Fraction) -> float:
    """About where exp(-linear v - quadratic v^2) is negligible."""
    far = -math.log(NEGLIGIBLE)
    return min(
        far / float(linear) if linear else math.inf,
        math.sqrt(far / float(quadratic)) if quadratic else math.inf,
    )


def _floor(share: Decimal) -> int:
    scaled = share * UNIT
    whole = int(scaled.to_integral_value(ROUND_FLOOR))
    if (whole and scaled - whole < NEAR) or whole + 1 - scaled < NEAR:
        raise ArithmeticError("a threshold is too near to a whole number")
    return whole


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _at(table: Table, value: int) -> int:
    place = value - table.first
    return table.numbers[place] if 0 <= place < len(table.numbers) else 0


def _excess(ours: Sequence[int], theirs: Sequence[int], factor: Fraction) -> Fraction:
    times, by = factor.as_integer_ratio()
    gaps = (n * by - m * times for n, m in zip(ours, theirs, strict=True))
    return Fraction(sum(gap for gap in gaps if gap > 0), by)


def problems(document: Document) -> Iterator[str]:
    """Everything in a certificate that does not follow from the rest of it; nothing where the claim holds."""
    try:
        yield from _problems(document)
    except TooMuch:
        yield "it has numbers that no release has, and would not end to be recomputed"
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        yield f"it cannot be read: {type(error).__name__}"


def _problems(document: Document) -> Iterator[str]:
    if document["kind"] != "discreet certificate" or document["format_version"] != 1:
        yield "it is not a certificate of format 1"
        return
    tables: dict[Fraction, list[Table]] = {}
    for entry in document["tables"]:
        parameter = Fraction(entry["parameter"])
        if parameter <= 0:  # no probability is ever negligible
            raise TooMuch
        rows = [_table(document, parameter, count, row) for count, row in enumerate(entry["rows"])]
        tables[parameter] = rows
        if [table.digest() for table in rows] != [row["sha256"] for row in entry["rows"]]:
            yield f"parameter {parameter}: the thresholds of the {document['noise']} law have another digest"
    for one in document["statistics"]:
        yield from _statistic_problems(one, document, tables)
    yield from _total_problems(document)


def _statistic_problems(
    one: Document, document: Document, tables: Mapping[Fraction, Sequence[Table]]
) -> Iterator[str]:
    """What of one cross-tabulation does not follow from its law and from what neighbours change."""
    name, kind, parameter = one["statistic"], document["noise"], Fraction(one["parameter"])
    l1, l2_squared, largest = _reach(one, document["neighbours"])
    if (l1, l2_squared, largest) != (one["l1"], one["l2_squared"], one["largest"]):
        yield f"{name}: neighbours differ by {l1}, in squares {l2_squared}, in one cell {largest}"
        return  # what they reveal may take long to recompute
    if Fraction(one["share"]) != parameter * (l2_squared if kind == GAUSSIAN else l1):
        yield f"{name}: its share is not its parameter times what neighbours change"
    if kind != GAUSSIAN and _delta(kind, tuple(tables[parameter]), parameter, l1, largest) > Fraction(
        one["delta"]
    ):
        yield f"{name}: its delta is more than it states"


def _total_problems(document: Document) -> Iterator[str]:
    total, every = document["total"], document["statistics"]
    measure = "rho" if document["noise"] == GAUSSIAN else "epsilon"
    if document.get("composition", "basic") != "basic":
        yield from _composition_problems(document)
        return
    if "paths" in document:
        yield from _path_problems(document, measure)
        return
    spent = sum((Fraction(one["share"]) for one in every), Fraction(0))
    if spent > Fraction(total[measure]):
        yield f"the shares sum to {measure} = {spent}, more than {total[measure]}"
    if measure == "rho":
        if sum((Fraction(one["distance"]) for one in every), Fraction(0)) > Fraction(total["distance"]):
            yield "the distances to the law sum to more than it states"
        return
    added = (_added(Fraction(one["share"]), Fraction(one["distance"])) for one in every)
    delta = sum((Fraction(one["delta"]) for one in every), Fraction(0)) + sum(added, Fraction(0))
    if delta > Fraction(total["delta"]):
        yield f"the deltas sum to {float(delta):.3g}, more than {float(Fraction(total['delta'])):.3g}"


def _path_problems(document: Document, measure: str) -> Iterator[str]:
    """What a record costs in a tree of areas: it is in one area of each kind on its path, and no other.

    One that is replaced changes two paths, each by half of what its share counts; so every path must cost the same, and
    what is stated. Distances of all areas add up, because any of them may be looked at.
    """
    total, every = document["total"], document["statistics"]
    stated = Fraction(total[measure])
    spent: dict[int, Fraction] = {}
    deltas: dict[int, Fraction] = {}
    for one in every:
        spent[one["kind"]] = spent.get(one["kind"], Fraction(0)) + Fraction(one["share"])
        deltas[one["kind"]] = deltas.get(one["kind"], Fraction(0)) + Fraction(one.get("delta", 0))
    if not document["paths"]:
        yield "it has no path from the root to an area"
    for path in document["paths"]:
        cost = sum((spent.get(kind, Fraction(0)) for kind in path["kinds"]), Fraction(0))
        if cost != stated:
            yield f"a path of {path['areas']} areas spends {measure} = {cost}, not {stated}"
        delta = sum((deltas.get(kind, Fraction(0)) for kind in path["kinds"]), Fraction(0))
        if measure == "epsilon" and delta > Fraction(total["delta"]):
            yield f"the deltas of a path sum to {float(delta):.3g}, more than {float(Fraction(total['delta'])):.3g}"
    inner = {kind for path in document["paths"] for kind in path["kinds"][:-1]}
    for kind, areas in {one["kind"]: one["areas"] for one in every}.items():
        ending = sum(path["areas"] for path in document["paths"] if path["kinds"][-1:] == [kind])
        if ending != areas and kind not in inner:
            yield f"{areas} areas of kind {kind} are measured, and {ending} on a path"
    if measure == "rho" and sum((Fraction(one["distance"]) for one in every), Fraction(0)) > Fraction(
        total["distance"]
    ):
        yield "the distances to the law sum to more than it states"


def _composition_problems(document: Document) -> Iterator[str]:
    """What the composition of all cross-tabulations costs at the stated epsilon, where shares are not added up.

    A cross-tabulation is (share, delta)-private as a whole; where no cell changes by more than one, each change is
    (parameter, delta/l1)-private by itself.
    """
    losses: Counter[tuple[Fraction, Fraction]] = Counter()
    for one in document["statistics"]:
        single = one["largest"] == 1
        times = one["l1"] if single else 1
        losses[Fraction(one["parameter" if single else "share"]), Fraction(one["delta"]) / times] += times
    total = document["total"]
    epsilon = Fraction(total["epsilon"])
    distances = sum((Fraction(one["distance"]) for one in document["statistics"]), Fraction(0))
    with localcontext(_MATH):
        if sum(times * loss for (loss, _), times in losses.items()) <= epsilon:
            found = _decimal(sum((times * delta for (_, delta), times in losses.items()), Fraction(0)), _MATH)
        elif document["composition"] == "advanced":
            found = _advanced(losses, _decimal(epsilon, _MATH))
        elif math.prod(times + 1 for times in losses.values()) > MOST_OUTCOMES:
            yield "its composition has too many different losses to be recomputed here"
            return
        else:
            found = _convolved(losses, _decimal(epsilon, _MATH))
        found += _decimal(_added(epsilon, distances), _MATH) if distances else 0
    if Fraction(found) > Fraction(total["delta"]):
        yield f"composed, delta is {float(found):.3g}, more than {float(Fraction(total['delta'])):.3g}"


def _advanced(losses: Mapping[tuple[Fraction, Fraction], int], epsilon: Decimal) -> Decimal:
    """Kairouz, Oh & Viswanath: slack with drift + sqrt(2 s log ..) = epsilon, and the sum of the deltas."""
    sizes = [(_decimal(loss, _MATH), times) for (loss, _), times in losses.items()]
    squares = sum((times * e * e for e, times in sizes), Decimal(0))
    drift = sum((times * e * (e.exp() - 1) / (e.exp() + 1) for e, times in sizes), Decimal(0))
    own = sum((times * _decimal(delta, _MATH) for (_, delta), times in losses.items()), Decimal(0))
    if drift >= epsilon:
        return Decimal(1)
    t = (epsilon - drift) ** 2 / (2 * squares)
    above = t.exp() - Decimal(1).exp()
    slack = (-t).exp()
    return own + (min(slack, squares.sqrt() / above) if above > 0 else slack)


def _convolved(losses: Mapping[tuple[Fraction, Fraction], int], epsilon: Decimal) -> Decimal:
    """The exact delta of the most revealing steps with these losses: of n steps of e, i lose e and n - i gain it."""
    joint, kept = {Decimal(0): Decimal(1)}, Decimal(1)
    for (loss, delta), times in losses.items():
        e = _decimal(loss, _MATH)
        p = e.exp() / (1 + e.exp())
        kept *= (1 - _decimal(delta, _MATH)) ** times
        steps = [
            ((times - 2 * i) * e, math.comb(times, i) * p ** (times - i) * (1 - p) ** i)
            for i in range(times + 1)
        ]
        longer: dict[Decimal, Decimal] = {}
        for so_far, mass in joint.items():
            for further, share in steps:
                longer[so_far + further] = longer.get(so_far + further, Decimal(0)) + mass * share
        joint = longer
    over = (mass * (1 - (epsilon - loss).exp()) for loss, mass in joint.items() if loss > epsilon)
    return 1 - kept + kept * sum(over, Decimal(0))


def _reach(one: Document, neighbours: str) -> tuple[int, int, int]:
    """What neighbours change: c records come or go, m move to another cell, e begin or cease to be counted.

    Each changes a cell by so many units: one where records are counted, the largest weight where weights are summed.
    """
    c, m, e, units = one["came"], one["moved"], one["crossed"], one["units"]
    if neighbours == "add-remove":
        l1, l2_squared, largest = c + 2 * m + e, (c + m + e) ** 2 + m**2, c + m + e
    else:
        l1, largest = 2 * (c + 2 * m + e), c + 2 * m + 2 * e
        l2_squared = largest**2 + (c + 2 * m) ** 2
    return l1 * units, l2_squared * units**2, largest * units


def _table(document: Document, parameter: Fraction, count: int, row: Document) -> Table:
    if document["noise"] == "hellinger":
        return row_table(parameter, count, row["last"])
    if document["noise"] == "exponential":
        return utility_table(document["utility"], parameter, count)
    return law_table(document["noise"], parameter, document["bound"], row["first"], row["last"])


@lru_cache(maxsize=4096)
def _delta(kind: str, rows: tuple[Table, ...], parameter: Fraction, l1: int, largest: int) -> Fraction:
    """The delta of one cross-tabulation: d(k) for a cell that changes by k, at most the largest d(k)/k for each."""
    if kind not in ("hellinger", "exponential"):
        table = rows[0]
        _require_few(largest * len(table.numbers), MOST_STEPS)
        return l1 * max(table.delta(table, k * parameter, k) / k for k in range(1, largest + 1))
    if len(rows) == 1:
        one = rows[0].delta(rows[0], parameter, 1)
    else:
        one = max(a.delta(b, parameter) for a, b in pairwise(rows))
    _require_few(l1, MOST_CHANGES)
    grown = Fraction(_MATH.exp(_decimal(parameter, _MATH)))
    return one * l1 if largest == 1 else one * sum((grown**k for k in range(l1)), Fraction(0))


def _added(share: Fraction, distance: Fraction) -> Fraction:
    """What a distance to the law adds to delta: (1 + e^epsilon) times it."""
    return (1 + Fraction(_MATH.exp(_decimal(share, _MATH)))) * distance
