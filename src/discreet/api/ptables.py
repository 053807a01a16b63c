"""P-tables in a notebook: solved, read, written in the formats of other software, and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from discreet.api.arguments import chosen, names_arguments
from discreet.api.laws import table_of
from discreet.api.results import Result
from discreet.api.secret import Secret, secret_key
from discreet.errors import Problem, mistake
from discreet.io.ptable_files import PTableFile, PTableFormat, WrapRule, lookup_for, lookup_of
from discreet.io.ptable_files import read_ptable as read_file
from discreet.io.ptable_files import write_ptable as write_file
from discreet.maths.cells.keys import derive
from discreet.maths.cells.lookup import Order
from discreet.maths.noise.ptable import (
    TOLERANCE,
    Demands,
    Law,
    PTable,
    RowFacts,
    TableFacts,
    row_facts,
    table_facts,
    unmet,
)
from discreet.maths.noise.ptable_solver import PTableParameters, Variance, solve
from discreet.report.ptable import ptable_chart, valid_line

PTables = PTable | PTableFile | Result[PTable] | Result[PTableFile] | str | Path
Format = Literal["r", "ons", "cantabular", "superstar"]
SMALL_N = 10


@names_arguments
def ptable(
    *,
    V: float | Sequence[float],
    D: int,
    js: int = 0,
    pstay: float | Sequence[float | None] | None = None,
    keep_pstay: bool = False,
    monotony: bool | Sequence[bool] = True,
    variance: Literal["at-most", "equal", "equal-where-feasible"] = "at-most",
    p_min: float = 1e-8,
) -> Result[PTable]:
    """The maximum-entropy p-table of the cell key method: variance ``V``, largest change ``D``, no counts 1 to ``js``.

    ``V``, ``pstay`` and ``monotony`` are one value, or one for each row 1, 2, ..; ``write_ptable`` writes the table.

    >>> import discreet as ds
    >>> table = ds.ptable(V=2, D=5, js=2)
    >>> table.smallest_positive
    3
    >>> table.chart().to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite")
    True
    """
    given = PTableParameters(
        D,
        V if isinstance(V, int | float) else tuple(V),
        js,
        pstay if pstay is None or isinstance(pstay, int | float) else tuple(pstay),
        monotony if isinstance(monotony, bool) else tuple(monotony),
        chosen("variance", variance, Variance),
        p_min,
        keep_pstay,
    )
    found = solve(given)
    name = f"p-table for V {V:g}, D {D}" if isinstance(V, int | float) else f"p-table for D {D}"
    name += f", no published count from 1 to {js}" if js else ""
    laws = _laws(found)
    head = f"{name}: {len(laws)} rows, changes of at most {found.reach}"
    return Result(
        found, (head, *found.notes), drawings=(ptable_chart(laws, name),), rows=_probabilities(laws)
    )


@names_arguments
def read_ptable(
    path: str | Path,
    *,
    format: Format | None = None,  # noqa: A002, as the command names it
    modulus: int | None = None,
    wrap: tuple[int, int] | None = None,
    small_n: int = SMALL_N,
) -> Result[PTableFile]:
    """Read a p-table file of R's package, of ONS, Cantabular or SuperSTAR; the format is known by its header.

    ``wrap`` is the first row that larger counts share and how many do: ``(501, 250)`` for ONS; ``small_n`` the number
    of last columns that they share in SuperSTAR. ``found.law()`` is the p-table, ``found.laws`` are the rows as given.

    >>> import discreet as ds
    >>> path = ds.write_ptable(ds.ptable(V=2, D=5), getfixture("tmp_path") / "ptable.csv", to="cantabular")
    >>> table = ds.read_ptable(path)
    >>> table.format.value, table.law().reach
    ('cantabular', 5)
    """
    found = read_file(Path(path), _format(format), modulus, _wrapped(wrap), small_n)
    laws = found.laws
    facts = [row_facts(count, law) for count, law in enumerate(laws)]
    head = f"{found.path.name}: {found.format.value} format, counts 0..{len(laws) - 1} and above"
    drawn = ptable_chart(laws, f"Transition probabilities of {found.path.name}")
    return Result(found, (head, *map(_row_line, facts)), drawings=(drawn,), rows=_probabilities(laws))


@names_arguments
def write_ptable(
    table: PTables,
    out: str | Path,
    *,
    to: Format = "r",
    order: Literal["plain", "split", "shuffled"] = "plain",
    secret: Secret | bytes | str | Path | None = None,
    modulus: int | None = None,
    tolerance: float = TOLERANCE,
) -> Path:
    """Write a p-table in a format of other software, and return the file.

    Of a file that was read, lists of keys keep every key's change where both formats allow it. ``order`` is that of the
    lookup intervals; ``secret`` keys the others than plain, and such a file is as secret. ``modulus`` is the number of
    keys: 256 or 4096 in lists of keys. ``tolerance`` is the largest bias of a row of a file that is accepted.

    >>> import discreet as ds
    >>> folder = getfixture("tmp_path")
    >>> path = ds.write_ptable(ds.ptable(V=2, D=5), folder / "ons.csv", to="ons")
    >>> ds.write_ptable(path, folder / "cantabular.csv", to="cantabular").name
    'cantabular.csv'
    """
    kind, ordered = _format(to) or PTableFormat.R, chosen("order", order, Order)
    if ordered is not Order.PLAIN and secret is None:
        raise mistake("", "order", repr(order), "give the secret that keys it: secret=")
    key = None if secret is None or ordered is Order.PLAIN else secret_key(secret).key
    shuffle = None if key is None else derive(key, "lookup-order")
    given: object = table.found if isinstance(table, Result) else table
    if isinstance(given, str | Path):
        given = read_file(Path(given))
    lookup = (
        lookup_of(given, kind, ordered, shuffle, modulus, tolerance)
        if isinstance(given, PTableFile)
        else lookup_for(table_of(table), kind, ordered, shuffle, modulus)
    )
    write_file(Path(out), kind, lookup)
    return Path(out)


@dataclass(frozen=True)
class CheckedPTable:
    """The demands that a p-table does not meet, and its worst rows.

    >>> import discreet as ds
    >>> ds.check_ptable(ds.ptable(V=2, D=5), D=4).found.problems[0].value
    'a change of 5'
    """

    facts: TableFacts
    problems: tuple[Problem, ...]

    @property
    def passed(self) -> bool:
        """Whether every demand is met."""
        return not self.problems


@names_arguments
def check_ptable(
    table: PTables,
    *,
    D: int | None = None,
    V: float | None = None,
    js: int | None = None,
    monotone: bool = False,
    tolerance: float = TOLERANCE,
    format: Format | None = None,  # noqa: A002
    modulus: int | None = None,
    wrap: tuple[int, int] | None = None,
    small_n: int = SMALL_N,
) -> Result[CheckedPTable]:
    """Verify a p-table or a file of one: complete, unbiased, and within the required limits.

    ``format`` to ``small_n`` are those of ``read_ptable``, for a path.

    >>> import discreet as ds
    >>> ds.check_ptable(ds.ptable(V=2, D=5, js=2), D=5, V=2, js=2).passed
    True
    """
    given: object = table.found if isinstance(table, Result) else table
    if isinstance(given, str | Path):
        given = read_file(Path(given), _format(format), modulus, _wrapped(wrap), small_n)
    laws = given.laws if isinstance(given, PTableFile) else _laws(table_of(table))
    facts = [row_facts(count, law) for count, law in enumerate(laws)]
    problems = tuple(unmet(facts, Demands(D, V, js, monotone, tolerance)))
    found = CheckedPTable(table_facts(facts), problems)
    lines = tuple(map(str, problems)) if problems else (valid_line(found.facts),)
    return Result(found, lines, rows=tuple(asdict(one) for one in facts))


def _laws(table: PTable) -> list[Law]:
    rows = range(table.last_row + 1)
    return [
        dict(zip(table.changes(row).tolist(), table.probabilities[row].tolist(), strict=True)) for row in rows
    ]


def _probabilities(laws: Iterable[Law]) -> tuple[Mapping[str, object], ...]:
    return tuple(
        {"count": count, "change": change, "probability": p}
        for count, law in enumerate(laws)
        for change, p in law.items()
    )


def _row_line(row: RowFacts) -> str:
    return (
        f"count {row.count}: variance {row.variance:.4f}, unchanged with probability {row.stay:.4f}, changes "
        f"{row.least:+d} to {row.most:+d}"
    )


def _format(given: str | None) -> PTableFormat | None:
    return None if given is None else chosen("format", given, PTableFormat)


def _wrapped(given: tuple[int, int] | None) -> WrapRule | None:
    if given is None:
        return None
    if not (isinstance(given, Sequence) and len(given) == 2 and all(isinstance(one, int) for one in given)):
        raise mistake("", "wrap", repr(given), "give the first shared row and their number: (501, 250)")
    return WrapRule(*given)
