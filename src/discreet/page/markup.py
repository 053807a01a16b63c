"""Escaped HTML fragments, and numbers formatted for readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import NewType

NONE = "–"
FEW = 0.001  # shares closer to 0 or 1 are shown as < or >
ROUNDING = 1e-12  # smaller values are rounding errors of floats


def count(value: float | None) -> str:
    """Format a count: 12,345."""
    return NONE if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    """Format a share or probability in percent; only exact 0 and 1 are shown as 0% and 100%."""
    if value is None:
        return NONE
    if 0 < value < FEW:
        return f"<{100 * FEW:g}%"
    if 1 - FEW < value < 1:
        return f">{100 * (1 - FEW):g}%"
    return f"{100 * _rounded(value):,.1f}%".replace(".0%", "%")


def _rounded(value: float) -> float:
    """The share without a negative rounding error."""
    return 0.0 if abs(value) < ROUNDING else value


def decimal(value: float | None, digits: int = 3) -> str:
    """Format a measured number with a few significant digits: 1.41, 0.0237, 1,230, 1.5e-07, below 1e-12."""
    if value is None:
        return NONE
    if 0 < abs(value) < ROUNDING:
        return f"below {ROUNDING:.0e}"
    if value and abs(value) < 1e-4:
        return f"{value:.1e}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def several(number: float, one: str, many: str) -> str:
    """Format a number with its noun: 1 table, 12 tables."""
    return f"{count(number)} {one if number == 1 else many}"


Html = NewType("Html", str)


def safe(text: object) -> Html:
    """Escape any text for HTML."""
    return Html(escape(str(text)))


def joined(parts: Iterable[str]) -> Html:
    """Join fragments by line breaks."""
    return Html("\n".join(parts))


def paragraph(text: str, kind: str = "") -> Html:
    """A paragraph; ``kind`` is a CSS class of ``style``."""
    mark = f' class="{kind}"' if kind else ""
    return Html(f"<p{mark}>{safe(text)}</p>")


def heading(text: str) -> Html:
    """A heading inside a section."""
    return Html(f"<h3>{safe(text)}</h3>")


def listing(items: Iterable[str]) -> Html:
    """A list of sentences."""
    return joined(["<ul>", *(f"<li>{safe(item)}</li>" for item in items), "</ul>"])


def folded(summary: str, content: Html) -> Html:
    """A collapsed block, which is expanded in print."""
    return joined([f"<details><summary>{safe(summary)}</summary>", content, "</details>"])


@dataclass(frozen=True)
class Tile:
    """One highlighted number."""

    what: str
    value: str
    more: str = ""
    kind: str = ""


def tiles(some: Sequence[Tile]) -> Html:
    """The most important numbers."""
    return joined(['<dl class="tiles">', *map(_tile, some), "</dl>"])


def _tile(one: Tile) -> str:
    more = f"<small>{safe(one.more)}</small>" if one.more else ""
    kind = f' class="{one.kind}"' if one.kind else ""
    return f'<div class="tile"><dt>{safe(one.what)}</dt><dd{kind}>{safe(one.value)}{more}</dd></div>'


class As(StrEnum):
    """How the values of a column are shown."""

    TEXT = "text"
    LONG = "text long"
    COUNT = "count"
    SHARE = "share"
    DECIMAL = "decimal"
    NUMBER = "number"  # a text that is already formatted


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    shown: As = As.TEXT


_FORMATS = {As.COUNT: count, As.SHARE: share, As.DECIMAL: decimal}


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Html:
    """A table that can be sorted by any column and scrolls inside its box if it is too wide."""
    body = [_row(columns, row) for row in rows]
    head = "".join(f'<th scope="col"{_kind(column)}>{safe(column.name)}</th>' for column in columns)
    sortable = ' class="sortable"' if len(body) > 1 else ""
    return joined(
        [
            f'<div class="table"><p class="caption" aria-hidden="true">{safe(caption)}</p>',
            f'<div class="scroll" role="region" aria-label="{safe(caption)}" tabindex="0">',
            f'<table{sortable} aria-label="{safe(caption)}"><thead><tr>{head}</tr></thead>',
            "<tbody>",
            *body,
            "</tbody></table></div></div>",
        ]
    )


def _kind(column: Column) -> str:
    is_text = column.shown in (As.TEXT, As.LONG)
    return f' class="{column.shown.value}"' if is_text else ""


def _row(columns: Sequence[Column], row: Sequence[object]) -> str:
    cells = "".join(_cell(column, value) for column, value in zip(columns, row, strict=True))
    return f"<tr>{cells}</tr>"


def _cell(column: Column, value: object) -> str:
    show = _FORMATS.get(column.shown)
    if show is None:
        return f"<td{_kind(column)}>{_plain(value)}</td>"
    if value is None:
        return f'<td data-value="">{NONE}</td>'
    number = float(value)  # type: ignore[arg-type]
    return f'<td data-value="{number!r}">{safe(show(number))}</td>'


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return f'<span class="{"holds" if value else "broken"}">{"✓ holds" if value else "✗ broken"}</span>'
    return NONE if value is None or value == "" else safe(value)
