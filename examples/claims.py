"""Printed numbers beside ours, what is made of each pair, and the tables that show them; it computes no statistics.

A printed number holds to half a unit of its last digit. Where either side was simulated, that much more is allowed as
chance explains: ``DEVIATIONS`` standard errors of the difference.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

DEVIATIONS = 3.5
SLACK = 1e-9
ROUNDING = 1e-12  # what is smaller may be rounding error, whose digits differ between processors
SAME_DIGITS = 12  # further digits may be those of rounding errors as well
NOTHING = "–"


class Verdict(StrEnum):
    """What becomes of a printed number."""

    REPRODUCES = "reproduces"  # to the last printed digit, or to within chance
    NEAR = "near"  # within the share that is stated, for the reason that is stated
    DIFFERS = "differs"  # and the reason is stated
    UNPRINTED = "no number printed"  # ours stands alone


@dataclass(frozen=True)
class Claim:
    """Numbers of one line of a table or sentence, ours in the same order, and what they are held to be."""

    where: str
    what: str
    printed: tuple[str, ...]
    ours: tuple[float, ...]
    verdict: Verdict
    why: str = ""
    share: float = 0.0  # of the printed number, within which it is near
    printed_error: float = 0.0  # standard error of the printed numbers
    error: float = 0.0  # standard error of ours
    digits: int = 4
    of_size: bool = False  # ours are of a made-up census, whose size changes them

    @property
    def is_sampled(self) -> bool:
        """Whether ours depend on how much was drawn."""
        return self.error > 0

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict that each number gives by itself."""
        if not self.printed:
            return [Verdict.UNPRINTED] * len(self.ours)
        return [self._verdict(text, ours) for text, ours in zip(self.printed, self.ours, strict=True)]

    def _verdict(self, text: str, ours: float) -> Verdict:
        apart, chance = abs(ours - float(text)), DEVIATIONS * math.hypot(self.printed_error, self.error)
        if apart <= half_unit(text) + chance:
            return Verdict.REPRODUCES
        return Verdict.NEAR if apart <= self.share * abs(float(text)) + chance else Verdict.DIFFERS

    @property
    def found(self) -> Verdict:
        """The verdict that the numbers give together: the worst of them."""
        return max(self.verdicts, key=list(Verdict).index)

    @property
    def holds(self) -> bool:
        """Whether the numbers bear the verdict out; what is said to differ must still differ.

        Few draws cannot tell near from equal, so that a sampled number may be found better than it is said to be.
        """
        return self.found is self.verdict or (
            self.is_sampled and (self.found, self.verdict) == (Verdict.REPRODUCES, Verdict.NEAR)
        )

    def with_errors(self, printed_error: float, error: float) -> Claim:
        """The same where both sides were simulated."""
        return replace(self, printed_error=printed_error, error=error)

    def row(self) -> tuple[str, ...]:
        """One line of a table."""
        ours = ", ".join(shown(value, self.digits) for value in self.ours)
        spread = f" ± {shown(self.error, 2)}" if self.is_sampled else ""
        verdict = (
            f"{self.verdict} (within {self.share:.1%})"
            if self.verdict is Verdict.NEAR
            else self.verdict.value
        )
        return self.where, self.what, ", ".join(self.printed) or NOTHING, ours + spread, verdict, self.why


HEAD = ("place", "what", "printed", "ours", "verdict", "why")


def half_unit(printed: str) -> float:
    """Half a unit of the last printed digit."""
    exponent = Decimal(printed).as_tuple().exponent
    if not isinstance(exponent, int):
        raise TypeError(f"not a number: {printed}")
    return 0.5 * 10.0**exponent * (1 + SLACK)


def shown(value: float, digits: int = 4) -> str:
    """A number with so many significant digits; whole numbers as they are, and nothing of what rounding errors are."""
    if 0 < abs(value) < ROUNDING:
        return f"below {ROUNDING:.0e}"
    value = float(f"{value:.{SAME_DIGITS}g}")
    if math.isfinite(value) and value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def rounding_error(value: float) -> float:
    """A number that only rounding makes other than 0, such as what is left of an identity; a 0 is shown so too."""
    return max(abs(value), sys.float_info.epsilon)


def exact(
    where: str, what: str, printed: str | Sequence[str], ours: float | Sequence[float], **more: float
) -> Claim:
    """A claim that comes out; numbers simulated on either side have their errors in ``more``."""
    return _claim(where, what, printed, ours, Verdict.REPRODUCES, "", **more)


def near(
    where: str, what: str, printed: str | Sequence[str], ours: float | Sequence[float], share: float, why: str
) -> Claim:
    """A claim that comes out to within a share of it."""
    return _claim(where, what, printed, ours, Verdict.NEAR, why, share=share)


def differs(
    where: str,
    what: str,
    printed: str | Sequence[str],
    ours: float | Sequence[float],
    why: str,
    **more: float,
) -> Claim:
    """A claim that does not come out."""
    return _claim(where, what, printed, ours, Verdict.DIFFERS, why, **more)


def unprinted(where: str, what: str, ours: float | Sequence[float], why: str = "", **more: float) -> Claim:
    """A number of ours where the paper has a picture or none."""
    return _claim(where, what, (), ours, Verdict.UNPRINTED, why, **more)


def _claim(
    where: str,
    what: str,
    printed: str | Sequence[str],
    ours: float | Sequence[float],
    verdict: Verdict,
    why: str,
    **more: float,
) -> Claim:
    texts = (printed,) if isinstance(printed, str) else tuple(printed)
    values = (float(ours),) if isinstance(ours, int | float) else tuple(float(value) for value in ours)
    digits, of_size = int(more.pop("digits", 4)), bool(more.pop("of_size", False))
    return Claim(where, what, texts, values, verdict, why, digits=digits, of_size=of_size, **more)


def markdown(claims: Iterable[Claim]) -> str:
    """The table of a page."""
    lines = [HEAD, ("---",) * len(HEAD), *(claim.row() for claim in claims)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary(claims: Sequence[Claim]) -> str:
    """How many numbers have which verdict."""
    numbers = Counter(verdict for claim in claims for verdict in claim.verdicts)
    return ", ".join(f"{numbers[one]} {one.value}" for one in Verdict if numbers[one])
