"""What every function of the library returns: a typed finding with a summary, a frame, a page and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet.api.drawings import as_picture, shown
from discreet.api.tables import summary_frame
from discreet.errors import mistake
from discreet.io.serialize import to_json
from discreet.page.charts import WIDE, Chart, Drawing
from discreet.page.markup import Html, listing
from discreet.page.skeleton import Part

if TYPE_CHECKING:
    import pandas as pd

Found_co = TypeVar("Found_co", covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class Result(Generic[Found_co]):
    """A finding: ``found`` is the typed object, whose attributes are also those of the result.

    >>> import discreet as ds
    >>> result = ds.ptable(V=2, D=5)
    >>> result.found.reach
    5
    >>> result.reach
    5
    >>> print(result.summary().splitlines()[0])
    p-table for V 2, D 5: 6 rows, changes of at most 5
    """

    found: Found_co
    lines: tuple[str, ...]  # in plain text
    parts: tuple[Part, ...] = ()  # of a page
    drawings: tuple[Chart, ...] = ()  # beside those of the parts
    rows: tuple[Mapping[str, object], ...] = ()  # of the frame; without them it has every figure by name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "found":
            raise AttributeError(name)
        return getattr(self.found, name)

    def summary(self) -> str:
        """The result in plain lines."""
        return "\n".join(self.lines)

    def to_pandas(self) -> pd.DataFrame:
        """The result as a pandas data frame: its rows, or every figure by name."""
        return summary_frame(self.rows or figure_rows(self.found))

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts, each with a title and a description in words; ``svg`` and ``png`` make files of them."""
        return (*self.drawings, *(chart for part in self.parts for chart in part.charts))

    def chart(self, name: str | None = None) -> Drawing:
        """A chart as an Altair object: the first, or that of a name."""
        named = {one.name: one for one in self.charts}
        if not named:
            raise mistake("", "chart", "this result has none", "see summary() and to_pandas()")
        if name is not None and name not in named:
            raise mistake("", "chart", repr(name), f"choose from {', '.join(named)}")
        found = named[name] if name is not None else self.charts[0]
        return as_picture(found.draw(WIDE).properties(title=found.title))

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> Html:
        drawn = [chart.html() for chart in self.drawings]
        return shown(
            [*(part.html() for part in self.parts), *([] if self.parts else [listing(self.lines)]), *drawn]
        )


def figure_rows(found: object) -> tuple[Mapping[str, object], ...]:
    """Every figure of an object that can be written as JSON, by name."""
    return tuple({"figure": name, "value": value} for name, value in figures(to_json(found)))


def figures(document: Any, name: str = "") -> Iterator[tuple[str, object]]:
    """The numbers and texts of a document, by their path."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from figures(value, f"{name}.{key}".strip("."))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from figures(value, f"{name}[{place}]")
    else:
        yield name, document
