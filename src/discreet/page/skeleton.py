"""The frame of a page that needs no network: head, notice, contents and parts; and writing a chart as a file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import mistake
from discreet.io.ending import putting
from discreet.page.charts import Chart
from discreet.page.markup import Html, joined, paragraph, safe
from discreet.page.style import SORT, STYLE

Block = Html | Chart


@dataclass(frozen=True)
class Part:
    """One section: first its conclusion in a sentence, then the evidence."""

    id: str
    title: str
    lead: str  # may be empty where a chart shows it
    blocks: tuple[Block, ...] = ()
    mood: str = ""  # good or bad, where the lead is a verdict

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of the section."""
        return tuple(block for block in self.blocks if isinstance(block, Chart))

    def html(self) -> Html:
        """The HTML of the section."""
        return joined(
            [
                f'<section id="{safe(self.id)}" aria-labelledby="{safe(self.id)}-title">',
                f'<h2 id="{safe(self.id)}-title">{safe(self.title)}</h2>',
                *([paragraph(self.lead, f"lead {self.mood}".rstrip())] if self.lead else []),
                *(block.html() if isinstance(block, Chart) else block for block in self.blocks),
                "</section>",
            ]
        )


@dataclass(frozen=True)
class Page:
    """A page; the notice at the top states who may read it, where needed."""

    title: str
    under: str
    notice: str
    is_private: bool
    opening: tuple[Html, ...]
    parts: tuple[Part, ...]
    footer: str = ""

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts of all parts."""
        return tuple(chart for part in self.parts for chart in part.charts)

    def html(self) -> str:
        """The HTML document."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        yield f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield '<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark">'
        yield f"<title>{safe(self.title)}</title><style>{STYLE}</style></head><body>"
        yield '<a class="skip" href="#content">Skip to the content</a>'
        if self.notice:
            kind = "private" if self.is_private else "open"
            yield f'<aside class="notice {kind}" aria-label="Who may read this">{paragraph(self.notice)}</aside>'
        yield f'<div class="frame"><header><h1>{safe(self.title)}</h1>'
        if self.under:
            yield paragraph(self.under, "under")
        yield f"{joined(self.opening)}</header>"
        yield self._contents()
        yield '<main id="content" tabindex="-1">'
        yield from (part.html() for part in self.parts)
        yield f"<footer>{paragraph(self.footer)}</footer></main></div>" if self.footer else "</main></div>"
        yield f"<script>{SORT}</script></body></html>"

    def _contents(self) -> str:
        links = "".join(f'<li><a href="#{safe(part.id)}">{safe(part.title)}</a></li>' for part in self.parts)
        return f'<nav aria-labelledby="contents"><h2 id="contents">On this page</h2><ol>{links}</ol></nav>'


def _policy() -> str:
    """The content security policy: nothing is loaded from elsewhere and no other script runs."""
    digest = base64.b64encode(hashlib.sha256(SORT.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def check_picture(path: Path) -> None:
    """Refuse a path to which no chart can be written."""
    if path.suffix.lower() not in (".png", ".svg", ".html"):
        remedy = "choose .png, .svg or .html"
        raise mistake(path, "--picture", f"the extension {path.suffix or 'missing'}", remedy)
    if not path.absolute().parent.is_dir():
        raise mistake(path, "--picture", "no such folder", "create it, or choose another path")


def write_picture(path: Path, chart: Chart, numbers: Html) -> None:
    """Write a chart as .png, .svg or .html by the extension of the path; the page also has its numbers as a table."""
    check_picture(path)
    kind = path.suffix.lower()
    if kind == ".html":
        parts = (Part("chart", "Chart", "", (chart,)), Part("numbers", "Numbers", "", (numbers,)))
        content = Page(chart.title, "", "", is_private=False, opening=(), parts=parts).html().encode()
    else:
        content = chart.png() if kind == ".png" else chart.svg().encode()
    try:
        with putting(str(path)):
            path.write_bytes(content)
    except OSError as error:
        problem = error.strerror or "cannot be written"
        raise mistake(path, "--picture", problem, "choose another path") from None
