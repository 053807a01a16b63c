"""Excel workbooks: the table as people read it, its notes, and a line for each cell as programs read it.

Sheet ``Table`` has some axes in rows and others in columns, where that fits; ``Notes`` states what the numbers are and
how to cite them; ``Data`` has codes, labels and levels, over as many sheets as it needs. xlsxwriter makes the empty
workbook with its styles; the rows are written here as text, some ten times faster.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import chain, islice
from math import prod
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.formats.columns import CODES_AND_LABELS, LongForm, Texts, batches, schema
from discreet.formats.dataset import LABEL_SUFFIX, VALUE, Dataset, DatasetAxis, Sink, grid_places
from discreet.lazy import lazily
from discreet.programme.codelist import TOTAL

if TYPE_CHECKING:
    import xlsxwriter
    from xlsxwriter import utility
else:
    xlsxwriter, utility = lazily("xlsxwriter"), lazily("xlsxwriter.utility")

SHEET_ROWS, SHEET_COLUMNS = 1_048_576, 16_384  # limits of Excel, headers included
CELL_TEXT = 32_767  # characters of a cell
FASTEST, SMALL = 1, 6  # levels of compression
TABLE, NOTES, DATA = "Table", "Notes", "Data"
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - Excel knows no zones; fixed so that bytes depend on content only
FEW_COLUMNS = 40  # codes that are readable side by side
SMALL_GRID, LARGEST_GRID = 50_000, 4  # a larger table is laid out only up to so many times its listed cells
DEEPEST_INDENT = 6
NOTE_LINE, LINE_HEIGHT, MOST_LINES = 100, 15, 27  # characters of a line of notes, points, lines of a row
STUB, COLUMN, LONG_COLUMN = 30, 13, 16  # widths
_FILE_TIME = (1980, 1, 31, 0, 0, 0)
_FILE_MODE = 0o100600 << 16
_ROWS_AT_ONCE = 4096
_ZIP_LIMIT = 1 << 31  # bytes of a member, without the longer headers
_CELL_XML = 80  # bytes around a cell's text
_SHEET = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_OUTER_SPACE = re.compile(r"^\s|\s$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
# Strings stay strings: a label that starts with "=" or "http" must not become a formula or a link.
_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "use_zip64": True}
_HEAD: dict[str, Any] = {"bold": True, "text_wrap": True, "valign": "bottom", "bottom": 1}
_STYLES: dict[str, dict[str, Any]] = {
    "wrapped": {"text_wrap": True, "valign": "top"},
    "bold": {"bold": True, "valign": "top"},
    "title": {"bold": True, "font_size": 14},
    "about": {"italic": True, "font_color": "#555555"},
    "corner": _HEAD,
    "head": {**_HEAD, "align": "right"},
    "count": {"num_format": "#,##0"},
    "count total": {"num_format": "#,##0", "bold": True},
    "decimal": {"num_format": "#,##0.0"},
    "decimal total": {"num_format": "#,##0.0", "bold": True},
    "share": {"num_format": "0.00"},
    "share total": {"num_format": "0.00", "bold": True},
    "signed": {"num_format": "+#,##0;-#,##0;0"},
    "signed total": {"num_format": "+#,##0;-#,##0;0", "bold": True},
    **{f"stub {k}": {"indent": k} for k in range(DEEPEST_INDENT + 1)},
    **{f"stub {k} total": {"indent": k, "bold": True} for k in range(DEEPEST_INDENT + 1)},
}

Cell = str | int | float | None


@dataclass(frozen=True, eq=False)
class WideForm:
    """Which axes are in columns, how codes are shown, and the numbers of each cell: measure -> values, nan is empty.

    ``lines`` and ``fields`` are the rows and columns that are shown, in their order, among all combinations of codes.
    """

    across: tuple[int, ...]
    texts: Texts = Texts.LABELS
    measures: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # none: the published values
    captions: Mapping[str, str] = field(default_factory=dict)  # of measures; none: their names
    styles: Mapping[str, str] = field(default_factory=dict)  # of measures; none: two decimals
    lines: NDArray[np.int64] | None = None  # None: all
    fields: NDArray[np.int64] | None = None
    stubs: tuple[int, ...] = ()  # widths of the row headers, in characters; none: all the same


def write_xlsx(
    dataset: Dataset,
    sink: Sink,
    wide: WideForm | None = None,
    columns: LongForm = CODES_AND_LABELS,
    level: int = SMALL,
) -> None:
    """Write a workbook; without a form the table is laid out as suits it, where it fits on a sheet."""
    form = wide or suitable_form(dataset)
    table = None if form is None else _WideSheet(dataset, form)
    length, room = len(dataset.values), SHEET_ROWS - 1  # lines of a data sheet below its header
    sheets = max(1, -(-length // room))
    longest = _longest(dataset)
    lines = _long_lines(dataset, columns)
    header = _long_header(dataset, columns)
    with (
        _Workbook(dataset, table, sheets, len(header)) as book,
        ZipFile(book.empty) as before,
        ZipFile(sink, "w", ZIP_DEFLATED) as after,
    ):
        for item in before.infolist():
            xml = before.read(item).decode()
            number = _SHEET.fullmatch(item.filename)
            if number is None:
                _write_member(after, item.filename, [xml], len(xml), level)
                continue
            place = int(number[1]) - (1 if table is not None else 0)  # 0: the table, 1: notes, then data
            if place == 0 and table is not None:
                filled = _filled(xml, table.rows(book.styles), table.length, table.width)
                _write_member(after, item.filename, filled, table.length * table.width * longest, level)
            elif place == 1:
                notes = _note_rows(dataset.headed_notes, book.styles)
                filled = _filled(xml, notes, len(dataset.headed_notes), 2)
                _write_member(after, item.filename, filled, 0, level)
            else:
                size = min(room, length)
                rows = _long_rows(header, islice(lines, size), book.styles, dataset)
                filled = _filled(xml, rows, size + 1, len(header))
                _write_member(after, item.filename, filled, size * len(header) * longest, level)
                length -= size


def suitable_form(dataset: Dataset) -> WideForm | None:
    """The last axis with few codes that is no place in columns; None where the table does not fit on a sheet."""
    axes = list(enumerate(dataset.axes))
    few = [k for k, axis in axes if not axis.is_place and len(axis) <= FEW_COLUMNS]
    across = (few[-1],) if few and len(axes) > 1 else ()
    fits = dataset.size <= max(SMALL_GRID, LARGEST_GRID * len(dataset.values))
    form = WideForm(across)
    return form if fits and dataset.axes and fits_on_a_sheet(dataset, form) else None


def fits_on_a_sheet(dataset: Dataset, form: WideForm) -> bool:
    """Whether a table has no more rows and columns than a sheet of Excel."""
    sheet = _WideSheet(dataset, form)
    return sheet.length <= SHEET_ROWS and sheet.width <= SHEET_COLUMNS


def shown(axis: DatasetAxis, texts: Texts) -> tuple[str, ...]:
    """The codes of an axis as readers see them."""
    if texts is Texts.CODES:
        return axis.codes
    if texts is Texts.LABELS:
        return axis.labels
    return tuple(
        code if code == label else f"{code} {label}"
        for code, label in zip(axis.codes, axis.labels, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _WideSheet:
    """The table as people read it: title, what is counted, headers, and a line for each combination of row codes."""

    dataset: Dataset
    form: WideForm

    @property
    def down(self) -> tuple[int, ...]:
        return tuple(k for k in range(len(self.dataset.axes)) if k not in self.form.across)

    @property
    def names(self) -> list[str]:
        """The measures; a plain count needs no name."""
        return list(self.form.measures) or [VALUE]

    @property
    def named(self) -> bool:
        """Whether a header line names the measures."""
        return self.names != [VALUE] or not self.form.across

    @property
    def top(self) -> int:
        """Lines above the first number: title, what is counted, an empty one, names of columns, headers."""
        return 3 + (1 if self.form.across else 0) + len(self.form.across) + self.named

    @property
    def left(self) -> int:
        return max(1, len(self.down))

    @property
    def length(self) -> int:
        return self.top + self._shown(self.form.lines, self.down)

    @property
    def width(self) -> int:
        return self.left + len(self.names) * self._shown(self.form.fields, self.form.across)

    def _shown(self, given: NDArray[np.int64] | None, axes: Sequence[int]) -> int:
        """How many rows or columns are shown."""
        return prod(self.dataset.shape[k] for k in axes) if given is None else len(given)

    def _places(self, given: NDArray[np.int64] | None, axes: Sequence[int]) -> list[list[int]]:
        """Axis -> the position of each row or column along it."""
        every = grid_places(tuple(self.dataset.shape[k] for k in axes))
        return [(along if given is None else along[given]).tolist() for along in every]

    def rows(self, styles: Mapping[str, int]) -> Iterator[str]:
        """The lines as XML."""
        head = _Line(styles)
        yield head.row([(self.dataset.title, "title")])
        yield head.row([(f"{self.dataset.counted}. {self.dataset.source}", "about")])
        yield head.row([])
        for line in self._headers():
            yield head.row(line)
        yield from self._body(styles)

    def _headers(self) -> Iterator[list[tuple[str, str]]]:
        axes, across = self.dataset.axes, self.form.across
        if across:
            yield [("", "")] * self.left + [(" / ".join(axes[k].label for k in across), "about")]
        lines = []
        for k, places in zip(across, self._places(self.form.fields, across), strict=True):
            texts = shown(axes[k], self.form.texts)
            lines.append([texts[place] for place in places for _ in self.names])
        if self.named:
            counted = [self.dataset.counted if name == VALUE else name for name in self.names]
            captions = [
                self.form.captions.get(name, caption)
                for name, caption in zip(self.names, counted, strict=True)
            ]
            lines.append(captions * self._shown(self.form.fields, across))
        corner = [axes[k].label for k in self.down] or [""]
        for number, line in enumerate(lines, start=1):
            stub = corner if number == len(lines) else [""] * self.left
            yield [*((text, "corner") for text in stub), *((text, "head") for text in line)]

    def _body(self, styles: Mapping[str, int]) -> Iterator[str]:
        """A line of stubs and numbers for each row; bold where one of its codes, or one of a column, is the total."""
        dataset, down, across = self.dataset, self.down, self.form.across
        places = self._places(self.form.lines, down)
        stubs = [self._stub(k, set(along), styles) for k, along in zip(down, places, strict=True)]
        columns = [utility.xl_col_to_name(k) for k in range(self.width)]
        rows = prod(dataset.shape[k] for k in down)
        numbers = [
            self._numbers(name).reshape(dataset.shape).transpose((*down, *across)).reshape(rows, -1)
            for name in self.names
        ]
        grid = np.stack(numbers, axis=-1)
        grid = grid if self.form.lines is None else grid[self.form.lines]
        grid = grid if self.form.fields is None else grid[:, self.form.fields]
        bold = self._total_columns()
        plain, total = (self._number_styles(styles, bold, row_total) for row_total in (False, True))
        totals = [self._total(k) for k in down]
        for at, (nodes, line) in enumerate(
            zip(zip(*places, strict=True) if down else [()], grid.reshape(len(grid), -1), strict=True)
        ):
            number = self.top + 1 + at
            cells = [
                f'<c r="{column}{number}"{stub[node]}'
                for column, stub, node in zip(columns, stubs, nodes, strict=False)
            ]
            looks = total if any(node == of for node, of in zip(nodes, totals, strict=True)) else plain
            cells += [
                f'<c r="{column}{number}"{look}{value}</v></c>'
                for column, look, value in zip(columns[self.left :], looks, line.tolist(), strict=True)
                if value is not None
            ]
            yield f'<row r="{number}">{"".join(cells)}</row>'

    def _total(self, k: int) -> int:
        """The position of an axis' total, -1 where it has none or nothing else."""
        codes = self.dataset.axes[k].codes
        return codes.index(TOTAL) if TOTAL in codes and len(codes) > 1 else -1

    def _stub(self, k: int, shown_nodes: set[int], styles: Mapping[str, int]) -> list[str]:
        """The end of a stub's cell for each code: indented below what is shown above it, bold for the total."""
        axis = self.dataset.axes[k]
        places = {code: node for node, code in enumerate(axis.codes)}
        above = [places.get(parent, -1) for parent in axis.parents]
        found = []
        for node, (code, text) in enumerate(zip(axis.codes, shown(axis, self.form.texts), strict=True)):
            depth, parent = 0, above[node]
            while parent >= 0:
                depth, parent = depth + (parent in shown_nodes), above[parent]
            look = f"stub {min(depth, DEEPEST_INDENT)}{' total' if code == TOTAL else ''}"
            found.append(f' s="{styles[look]}"{_text(text)}')
        return found

    def _total_columns(self) -> list[bool]:
        across = self.form.across
        totals = [self._total(k) for k in across]
        keys = zip(*self._places(self.form.fields, across), strict=True) if across else [()]
        found = [any(node == of for node, of in zip(key, totals, strict=True)) for key in keys]
        return [one for one in found for _ in self.names]

    def _number_styles(self, styles: Mapping[str, int], bold: Sequence[bool], row_total: bool) -> list[str]:
        kinds = [self._kind(name) for name in self.names] * (len(bold) // len(self.names))
        looks = (
            f"{kind} total" if total or row_total else kind for kind, total in zip(kinds, bold, strict=True)
        )
        return [f' s="{styles[look]}"><v>' for look in looks]

    def _kind(self, name: str) -> str:
        if name != VALUE:
            return self.form.styles.get(name, "share")
        return "decimal" if self.dataset.values.dtype.kind == "f" else "count"

    def _numbers(self, name: str) -> NDArray[np.object_]:
        dataset, given = self.dataset, self.form.measures.get(name)
        if given is not None and name != VALUE:
            cells = given.astype(object)
            cells[np.isnan(given)] = None
            return cells
        cells = dataset.window(0, dataset.size).astype(object)
        if dataset.withheld is not None:
            cells[dataset.withheld] = None
        if dataset.part is not None:
            cells[dataset.absent(0, dataset.size)] = None
        return cells


@dataclass
class _Line:
    """Rows of a few styled texts, numbered as they are written."""

    styles: Mapping[str, int]
    number: int = 0

    def row(self, cells: Sequence[tuple[str, str]]) -> str:
        """The next row; texts that are empty have no cell unless they have a style."""
        self.number += 1
        inside = "".join(
            f'<c r="{utility.xl_col_to_name(at)}{self.number}" s="{self.styles[look]}"{_text(text) if text else "/>"}'
            for at, (text, look) in enumerate(cells)
            if look
        )
        return f'<row r="{self.number}">{inside}</row>'


class _Workbook:
    """The empty workbook with its sheets, styles and print set-up, whose rows are to be replaced."""

    def __init__(self, dataset: Dataset, table: _WideSheet | None, sheets: int, width: int) -> None:
        self._dataset, self._table, self._sheets, self._width = dataset, table, sheets, width
        self.styles: dict[str, int] = {}
        self.empty = io.BytesIO()

    def __enter__(self) -> _Workbook:
        with xlsxwriter.Workbook(self.empty, _OPTIONS) as book:
            book.set_properties(
                {"title": self._dataset.title, "subject": self._dataset.source, "created": CREATED}
            )
            for name, looks in _STYLES.items():
                self.styles[name] = book.add_format(looks)._get_xf_index()  # noqa: SLF001 - the number of the style
            if self._table is not None:
                self._set_up_table(book.add_worksheet(TABLE), self._table)
            notes = book.add_worksheet(NOTES)
            notes.set_column(0, 0, 24)
            notes.set_column(1, 1, 100)
            _printed(notes, top=0)
            for number in range(1, self._sheets + 1):
                sheet = book.add_worksheet(DATA if number == 1 else f"{DATA} {number}")
                sheet.set_column(0, self._width - 1, LONG_COLUMN)
                sheet.freeze_panes(1, 0)
                _printed(sheet, top=1)
        self.empty.seek(0)
        return self

    def __exit__(self, *error: object) -> None:
        self.empty.close()

    def _set_up_table(self, sheet: Any, table: _WideSheet) -> None:
        for k, width in enumerate(table.form.stubs or (STUB,) * table.left):
            sheet.set_column(k, k, width)
        sheet.set_column(table.left, table.width - 1, COLUMN)
        sheet.freeze_panes(table.top, table.left)
        _printed(sheet, table.top)
        sheet.repeat_columns(0, table.left - 1)
        sheet.activate()


def _printed(sheet: Any, top: int) -> None:
    """Landscape on A4, one page wide, headers on every page, its number below."""
    sheet.set_landscape()
    sheet.set_paper(9)
    sheet.fit_to_pages(1, 0)
    sheet.set_footer("&L&A&R&P / &N")
    if top:
        sheet.repeat_rows(0, top - 1)


def _long_header(dataset: Dataset, columns: LongForm) -> list[str]:
    """A column of labels has the variable's name for readers, where there is one."""
    names = {axis.variable + LABEL_SUFFIX: axis.name for axis in dataset.axes if axis.name != axis.variable}
    return [names.get(name, name) for name in schema(dataset, columns).names]


def _long_lines(dataset: Dataset, columns: LongForm) -> Iterator[tuple[str, ...]]:
    """The ends of the cells of each line, as XML."""
    for batch in batches(dataset, columns):
        yield from zip(*(_ends(column) for column in batch.columns), strict=True)


def _ends(column: pa.Array) -> list[str]:
    if isinstance(column, pa.DictionaryArray):
        texts = [_text(text) if text else "/>" for text in column.dictionary.to_pylist()]
        ends: list[str] = np.array([*texts, ""], dtype=object)[column.indices.to_numpy()].tolist()
        return ends
    return ["/>" if value is None else _number(value) for value in column.to_pylist()]


def _long_rows(
    header: Sequence[str], lines: Iterable[tuple[str, ...]], styles: Mapping[str, int], dataset: Dataset
) -> Iterator[str]:
    """The header and the rows of a data sheet; one template makes a row."""
    yield _Line(styles).row([(name, "bold") for name in header])
    pieces = "".join(f'<c r="{utility.xl_col_to_name(k)}{{0}}"{{{k + 1}}}' for k in range(len(header)))
    row: Callable[..., str] = f'<row r="{{0}}">{pieces}</row>'.format
    for number, ends in enumerate(lines, start=2):
        yield row(number, *ends)


def _note_rows(notes: Sequence[tuple[str, str]], styles: Mapping[str, int]) -> Iterator[str]:
    line = _Line(styles)
    for head, text in notes:
        lines = sum(max(1, -(-len(part) // NOTE_LINE)) for part in text.split("\n"))
        row = line.row([(head, "bold"), (text[:CELL_TEXT], "wrapped")])
        yield row.replace(">", f' ht="{LINE_HEIGHT * min(lines, MOST_LINES)}" customHeight="1">', 1)


def _write_member(book: ZipFile, name: str, pieces: Iterable[str], at_most: int, level: int) -> None:
    member = ZipInfo(name, _FILE_TIME)
    member.external_attr, member.compress_type = _FILE_MODE, ZIP_DEFLATED
    member._compresslevel = level  # type: ignore[attr-defined]  # noqa: SLF001 - no public way for a stream
    with book.open(member, "w", force_zip64=at_most > _ZIP_LIMIT) as file:
        for piece in pieces:
            file.write(piece.encode())


def _longest(dataset: Dataset) -> int:
    """Bytes that no cell of a table exceeds, escapes included."""
    texts = (text for axis in dataset.axes for text in (*axis.codes, *axis.labels, axis.label))
    return _CELL_XML + 4 * max((len(text) for text in chain(texts, [dataset.title])), default=0)


def _filled(xml: str, rows: Iterator[str], length: int, width: int) -> Iterator[str]:
    """A sheet's XML with these rows."""
    before, _, rest = xml.partition("<sheetData")
    after = rest.partition("</sheetData>")[2] or rest.partition("/>")[2]
    last = f"{utility.xl_col_to_name(max(1, width) - 1)}{max(1, length)}"
    yield re.sub(r'<dimension ref="[^"]*"/>', f'<dimension ref="A1:{last}"/>', before)
    yield "<sheetData>"
    while piece := "".join(islice(rows, _ROWS_AT_ONCE)):
        yield piece
    yield f"</sheetData>{after}"


def _number(number: float) -> str:
    return f"><v>{number:.16G}</v></c>" if isinstance(number, float) else f"><v>{number}</v></c>"


def _text(text: str) -> str:
    """A text as the end of a cell; what XML cannot contain is escaped as Excel does."""
    spelled = escape(_CONTROL.sub(_spelled, text[:CELL_TEXT]), quote=False)
    preserve = ' xml:space="preserve"' if _OUTER_SPACE.search(spelled) else ""
    return f' t="inlineStr"><is><t{preserve}>{spelled}</t></is></c>'


def _spelled(found: re.Match[str]) -> str:
    sign = found[0]
    return f"_x{ord(sign):04X}_" if len(sign) == 1 else f"_x005F{sign}"
