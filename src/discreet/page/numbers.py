"""Numbers as people read them; it owns the rounding of what is shown, never of what is computed with."""

from __future__ import annotations

NONE = "–"
FEW = 0.001  # shares nearer to 0 or to 1 are told as less, or more, than this


def count(value: float | None) -> str:
    """A number of things: 12,345."""
    return NONE if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    """A share or a chance in percent; one that is not quite none or all does not look like it."""
    if value is None:
        return NONE
    if 0 < value < FEW:
        return f"<{100 * FEW:g}%"
    if 1 - FEW < value < 1:
        return f">{100 * (1 - FEW):g}%"
    return f"{100 * value:,.1f}%".replace(".0%", "%")


def decimal(value: float | None, digits: int = 3) -> str:
    """A measured number with a few significant digits: 1.41, 0.0237, 1,230, 1.5e-07."""
    if value is None:
        return NONE
    if value and abs(value) < 1e-4:
        return f"{value:.1e}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def several(number: float, one: str, many: str) -> str:
    """A number with its noun: 1 table, 12 tables."""
    return f"{count(number)} {one if number == 1 else many}"
