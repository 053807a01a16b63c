"""The notes and the table of an answer's Excel workbook."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace

from discreet.formats.columns import Texts
from discreet.formats.dataset import VALUE, Dataset, DatasetAxis
from discreet.formats.xlsx import FASTEST, SHEET_COLUMNS, SHEET_ROWS, WideForm, shown, write_xlsx
from discreet.programme.release import default_agency
from discreet.serve.answer import Answer, Rule
from discreet.serve.catalogue import Catalogue
from discreet.serve.comparison import Comparison
from discreet.serve.dataset import citation, dataset_of, label_of
from discreet.serve.http.layout import (
    HIGH,
    LOW,
    Layout,
    Percent,
    long_form,
    measures,
    numbers_of,
    range_names,
    shown_places,
    sides,
)
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import to_json
from discreet.serve.rules import REASONS
from discreet.text.phrase import Phrase, joined, phrase, said

MOST_AREAS = 1_000  # withheld areas that are listed
NARROWEST, WIDEST = 14, 70  # widths of row headers, in characters


def workbook(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    """The workbook; a table too large for a sheet is a problem."""
    plain = dataset_of(answer, catalogue)
    dataset = replace(plain, title=_capital(plain.title))
    form = _form(answer, dataset, layout)
    texts = Texts.CODES if layout.texts is Texts.CODES else Texts.BOTH  # a sheet for programs has codes
    columns = long_form(answer, dataset, replace(layout, texts=texts))
    notes = [
        *_about(answer, catalogue, layout.link),
        *_how_to_read(dataset, layout),
        *_withheld(answer, catalogue),
        *_again(answer, layout),
    ]
    language = answer.language
    headed = tuple((said(head, language), said(text, language)) for head, text in notes)
    file = io.BytesIO()
    write_xlsx(replace(dataset, headed_notes=headed), file, form, columns, FASTEST)
    return file.getvalue()


def _form(answer: Answer, dataset: Dataset, layout: Layout) -> WideForm | None:
    """The variables in columns, the rows and the numbers that a user chose; None: those that suit the table."""
    _check_size(dataset.size + 1, 4 + 2 * len(dataset.axes))
    is_chosen = layout.columns or layout.computed or layout.ranges or layout.lines is not None
    if not is_chosen:
        return None
    across, down = sides(dataset, layout)
    lines, fields = shown_places(dataset, layout, down, across)
    given = numbers_of(answer, dataset, layout)
    names = [name for name in measures(layout) if name == VALUE or name in given]
    named = {} if names == [VALUE] else {name: given.get(name, dataset.values) for name in names}
    top, left = 4 + len(across) + bool(named), max(1, len(down))
    _check_size(top + len(lines), left + len(names) * len(fields))
    return WideForm(
        tuple(across),
        layout.texts,
        named,
        captions=_captions(answer, dataset, layout),
        styles=_styles(layout),
        lines=None if layout.lines is None else lines,
        fields=None if layout.fields is None else fields,
        stubs=tuple(_width_of(dataset.axes[k], layout.texts) for k in down),
    )


def _capital(text: str) -> str:
    """A text as a heading: "Persons by ..."."""
    return text[:1].upper() + text[1:]


def _width_of(axis: DatasetAxis, texts: Texts) -> int:
    """The width of the row headers of a variable, so that labels are not cut; its own name is wrapped."""
    indents = axis.depths or (0,) * len(axis)
    lengths = (len(text) + 2 * depth for text, depth in zip(shown(axis, texts), indents, strict=True))
    return max(NARROWEST, min(WIDEST, 2 + max(lengths)))


def _captions(answer: Answer, dataset: Dataset, layout: Layout) -> dict[str, str]:
    """The measures as readers call them."""
    name = layout.computed
    caption = _name_of(dataset, layout)
    ends = {LOW: phrase("from (95%)"), HIGH: phrase("to (95%)")}
    found = {**ends, name: caption}
    found |= {f"{name}_{end}": text for end, text in ends.items()}
    return {key: said(text, answer.language) for key, text in found.items()}


def _name_of(dataset: Dataset, layout: Layout) -> str:
    if layout.percent is not None:
        return _PERCENT_NAMES[layout.percent]
    if layout.compare is None:
        return ""
    axis = next(one for one in dataset.axes if one.variable == layout.compare.variable)
    base = axis.labels[axis.codes.index(layout.compare.code)]
    names = {
        Comparison.DIFFERENCE: phrase("Difference from {base}", base=base),
        Comparison.RATIO: phrase("Ratio to {base}", base=base),
        Comparison.INDEX: phrase("Index ({base} = 100)", base=base),
        Comparison.RATE: phrase("Per 1,000 of {base}", base=base),
    }
    return names[layout.compare.kind]


def _styles(layout: Layout) -> dict[str, str]:
    found = {LOW: "count", HIGH: "count"}
    if layout.kind is Comparison.DIFFERENCE:
        found |= dict.fromkeys((layout.computed, *range_names(layout.computed)), "signed")
    return found


_PERCENT_NAMES = {
    Percent.ROW: phrase("% of row"),
    Percent.COLUMN: phrase("% of column"),
    Percent.TOTAL: phrase("% of total"),
}


def _check_size(rows: int, columns: int) -> None:
    if rows > SHEET_ROWS or columns > SHEET_COLUMNS:
        message = phrase(
            "A sheet of Excel has at most {most_rows} rows and {most_columns} columns, this table has {rows} and "
            "{columns}: put other variables into columns, or download it as CSV or Parquet.",
            most_rows=SHEET_ROWS,
            most_columns=SHEET_COLUMNS,
            rows=rows,
            columns=columns,
        )
        raise HttpProblem(413, message, kind="size")


def _about(answer: Answer, catalogue: Catalogue, link: str) -> Iterator[tuple[str, str]]:
    query, labels = answer.query, catalogue.labels
    yield phrase("Table"), label_of(query, labels)
    source: dict[str, object] = {"source": catalogue.heading, "version": catalogue.version}
    if catalogue.agency == default_agency(catalogue.name):
        yield phrase("Source"), Phrase("{source} {version}", source)
    else:
        yield phrase("Source"), Phrase("{source} {version}, {agency}", {**source, "agency": catalogue.agency})
    yield phrase("Cite as"), citation(query, catalogue, link)
    yield phrase("Counted"), labels.counted(query.unit, query.count)
    yield phrase("Population"), query.where or phrase("all")
    axes = joined(*(labels.axis(axis.breakdown) for axis in answer.axes), by=", ")
    yield phrase("Axes"), axes or phrase("none")


def _how_to_read(dataset: Dataset, layout: Layout) -> Iterator[tuple[str, str]]:
    yield phrase("Totals"), phrase("The code _T means the total along a variable.")
    for note in dataset.all_notes:
        yield phrase("Note"), note
    yield phrase("Ranges"), _RANGES
    if layout.percent is not None:
        yield phrase("Percentages"), _PERCENT[layout.percent]
        yield phrase("Percentages"), _PERCENT_NOTE
    if layout.compare is not None:
        yield phrase("Comparison"), _COMPARED_NOTE
    yield (
        phrase("Empty cells"),
        phrase("Cells without a number are withheld; of percentages also those of a total of 0."),
    )


_RANGES = phrase(
    "The columns low and high of the sheet Data give where the count before the noise was, with 95% probability."
)
_PERCENT = {
    Percent.ROW: phrase("Each is a share of the published total of its row."),
    Percent.COLUMN: phrase("Each is a share of the published total of its column."),
    Percent.TOTAL: phrase("Each is a share of the published total of the table."),
}
_PERCENT_NOTE = phrase(
    "They are computed from published counts, which are perturbed: they need not add up to 100 %, and may exceed it."
)


_COMPARED_NOTE = phrase(
    "Numbers are compared with one category by their published counts. The ranges of a comparison contain the true one "
    "with at least 95% probability: they follow from the ranges of both counts by the law of the noise."
)


def _withheld(answer: Answer, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """The rules by which areas are judged, and the areas that they withhold."""
    rule = catalogue.rule
    declared_rules = {
        Rule.AREA_POPULATION: rule.area_population,
        Rule.SPARSITY: rule.sparsity,
        Rule.ATTRIBUTE: rule.attribute,
    }
    for one in (one for one, declared in declared_rules.items() if rule.place and declared is not None):
        yield phrase("Rules"), phrase("An area that {reason} is withheld.", reason=REASONS[one])
    for area in answer.blocked[:MOST_AREAS]:
        yield (
            phrase("Withheld"),
            phrase("{area} {reason}", area=f"{area.code} {area.label}", reason=REASONS[area.rule]),
        )
    if len(answer.blocked) > MOST_AREAS:
        yield phrase("Withheld"), phrase("{areas} areas in all", areas=len(answer.blocked))


def _again(answer: Answer, layout: Layout) -> Iterator[tuple[str, str]]:
    """How to get the table again."""
    if layout.link:
        yield phrase("Permanent link"), layout.link
    yield phrase("Question"), json.dumps(to_json(answer.query), ensure_ascii=False)
