"""Pieces of a page as text that is already safe to stand in it; it owns the escaping, not what is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import NewType

from discreet.page.numbers import NONE, count, decimal, share

Html = NewType("Html", str)


def safe(words: object) -> Html:
    """Any text, so that nothing in it is taken for markup."""
    return Html(escape(str(words)))


def joined(parts: Iterable[str]) -> Html:
    """Pieces one below the other."""
    return Html("\n".join(parts))


def paragraph(words: str, kind: str = "") -> Html:
    """A paragraph; its kind is one that the style knows."""
    mark = f' class="{kind}"' if kind else ""
    return Html(f"<p{mark}>{safe(words)}</p>")


def heading(words: str) -> Html:
    """A heading inside a section."""
    return Html(f"<h3>{safe(words)}</h3>")


def listing(items: Iterable[str]) -> Html:
    """A list of sentences."""
    return joined(["<ul>", *(f"<li>{safe(item)}</li>" for item in items), "</ul>"])


def folded(summary: str, content: Html) -> Html:
    """Something that is shown on demand; print shows it."""
    return joined([f"<details><summary>{safe(summary)}</summary>", content, "</details>"])


@dataclass(frozen=True)
class Tile:
    """One number that stands out."""

    what: str
    value: str
    more: str = ""
    kind: str = ""


def tiles(some: Sequence[Tile]) -> Html:
    """The few numbers that matter most."""
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


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    shown: As = As.TEXT


_FORMATS = {As.COUNT: count, As.SHARE: share, As.DECIMAL: decimal}


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Html:
    """A table that sorts by any of its columns and scrolls inside its box where it is too wide."""
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
