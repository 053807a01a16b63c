"""The page ``/api``: how programs get tables, with a table as its example. It needs no script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import citation, label_of
from discreet.serve.page.examples import Example, own_examples, table_examples
from discreet.serve.query import Axis, Query
from discreet.text.phrase import Language, phrase, said

_ROUTES = (
    (
        "GET /api/v1/catalogue",
        phrase("What there is: units, variables and their breakdowns, tables, limits."),
    ),
    ("GET /api/v1/breakdowns/{name}", phrase("The codes of a breakdown, with labels and parents.")),
    (
        "POST /api/v1/preview",
        phrase("How large a table would be, what it would cost, and whether it is allowed."),
    ),
    ("POST /api/v1/table", phrase("The table, as JSON-stat, CSV, XLSX, PX, SDMX-CSV or Parquet.")),
    ("POST /api/v1/noise-ranges", phrase("Where the true counts of cells are with 95% probability.")),
    ("POST /api/v1/jobs", phrase("Large tables, made in the background.")),
)


def example_query(catalogue: Catalogue) -> Query:
    """The smallest declared table, as the example of a reader who brings none."""
    tables = [one for one in catalogue.tables if one.axes and not one.base]
    if not tables:
        return Query(catalogue.units[0], ())

    def size(axes: Iterable[str]) -> int:
        product = 1
        for name in axes:
            found = catalogue.breakdown(name)
            product *= len(found.codes) if found else 1
        return product

    table = min(tables, key=lambda one: size(one.axes))
    return Query(table.unit, tuple(Axis(name) for name in table.axes), count=table.count)


def api_page(
    query: Query, catalogue: Catalogue, address: str, language: Language, style: str, with_token: bool
) -> bytes:
    """The page as HTML; ``address`` is that of the server, with a slash at its end."""

    def text(sentence: str) -> str:
        return escape(said(sentence, language))

    title = text(phrase("Tables for programs"))
    label = text(label_of(query, catalogue.labels))
    label = label[:1].upper() + label[1:]
    this, cite = text(phrase("This table")), text(phrase("How to cite"))
    parts = [
        f"<h1>{title}</h1><p class=lead>{text(_LEAD)}</p>",
        f"<h2>{this}</h2><p><strong>{label}</strong></p>",
        *(_example(one) for one in own_examples(query, address, with_token)),
        f"<p class=quiet>{text(_COLUMNS)}</p>",
        *_declared(query, catalogue, address, text),
        f"<h2>{cite}</h2><p id=citation>{text(citation(query, catalogue, address))}</p>",
        _addresses(text),
        f"<p class=quiet>{text(_TOKEN)}</p>",
    ]
    head = (
        '<meta charset=utf-8><meta name=viewport content="width=device-width, initial-scale=1">'
        '<meta name=color-scheme content="light dark">'
        f'<title>{title} · {escape(catalogue.heading)}</title><link rel=stylesheet href="{escape(style)}">'
        f'<link rel=icon href="{escape(style.replace("page.css", "icon.svg"))}" type="image/svg+xml">'
    )
    body = f"<body class=reading><main>{''.join(parts)}</main></body>"
    return f'<!doctype html><html lang="{language.value}"><head>{head}</head>{body}</html>'.encode()


def _declared(query: Query, catalogue: Catalogue, address: str, text: Callable[[str], str]) -> list[str]:
    """The examples of clients that know declared tables only."""
    examples = table_examples(query, catalogue, address)
    return [f"<h2>PxWeb, SDMX</h2><p>{text(_DECLARED)}</p>", *map(_example, examples)] if examples else []


def _addresses(text: Callable[[str], str]) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{escape(route)}</code></th><td>{text(about)}</td></tr>"
        for route, about in _ROUTES
    )
    title = text(phrase("Addresses"))
    openapi, back = (
        text(phrase("Description of every address (OpenAPI)")),
        text(phrase("To the table builder")),
    )
    return (
        f'<h2>{title}</h2><div class=routes tabindex=0 role=region aria-label="{title}">'
        f"<table><tbody>{rows}</tbody></table></div>"
        f'<p><a href="openapi.json">{openapi}</a> · <a href="./">{back}</a></p>'
    )


def _example(one: Example) -> str:
    name = escape(one.name)
    return (
        f'<div class=snippet><strong>{name}</strong><pre tabindex=0 role=region aria-label="{name}" '
        f'data-snippet="{name}"><code>{escape(one.text)}</code></pre></div>'
    )


_LEAD = phrase(
    "Everything that the table builder shows is available to programs, under the same rules and with the same values."
)
_COLUMNS = phrase(
    "Each line of the CSV file is a cell: codes, labels, the published value, and from low to high where the true "
    "count is with 95% probability."
)
_DECLARED = phrase(
    "Clients of PxWeb (versions 1 and 2) and of SDMX (2.1 and 3.0) find the tables that the office has declared."
)
_TOKEN = phrase(
    "An API token is sent as the header Authorization: Bearer; the examples read it from the environment variable "
    "TABLE_BUILDER_TOKEN."
)
