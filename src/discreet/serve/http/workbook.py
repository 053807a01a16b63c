"""The notes and the table of an answer's Excel workbook."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from math import prod

from discreet.formats.dataset import Dataset
from discreet.formats.xlsx import FASTEST, SHEET_COLUMNS, SHEET_ROWS, WideForm, write_xlsx
from discreet.serve.answer import Answer, Rule
from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import dataset_of, label_of
from discreet.serve.http.layout import Layout, Percent, long_form, measures, percentages, sides, with_ranges
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import to_json
from discreet.serve.rules import REASONS
from discreet.text.phrase import phrase, said

MOST_AREAS = 1_000  # withheld areas that are listed


def workbook(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    """The workbook; a table too large for a sheet is a problem."""
    dataset = dataset_of(answer, catalogue)
    form = _form(dataset, layout)
    columns = with_ranges(long_form(dataset, layout), answer)
    notes = [
        *_about(answer, catalogue),
        *_how_to_read(dataset, layout),
        *_withheld(answer, catalogue),
        *_again(answer, layout),
    ]
    language = answer.language
    headed = tuple((said(head, language), said(text, language)) for head, text in notes)
    file = io.BytesIO()
    write_xlsx(replace(dataset, headed_notes=headed), file, form, columns, FASTEST)
    return file.getvalue()


def _form(dataset: Dataset, layout: Layout) -> WideForm | None:
    """The variables in columns that a user chose; None: those that suit the table."""
    _check_size(dataset.size + 1, 4 + 2 * len(dataset.axes))
    if not layout.columns:
        return None
    across, down = sides(dataset, layout)
    shares = {} if layout.percent is None else {layout.percent.heading: percentages(dataset, layout)}
    named = {name: shares.get(name, dataset.values) for name in measures(layout)} if shares else {}
    top, left = 4 + len(across) + bool(shares), max(1, len(down))
    rows, width = prod(dataset.shape[k] for k in down), prod(dataset.shape[k] for k in across)
    _check_size(top + rows, left + len(measures(layout)) * width)
    return WideForm(tuple(across), layout.texts, named)


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


def _about(answer: Answer, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    query, labels = answer.query, catalogue.labels
    yield phrase("Table"), label_of(query, labels)
    yield phrase("Source"), f"{catalogue.heading} {catalogue.version}, {catalogue.agency}"
    yield phrase("Counted"), labels.counted(query.unit, query.count)
    yield phrase("Population"), query.where or phrase("all")
    yield phrase("Axes"), ", ".join(labels.axis(axis.breakdown) for axis in answer.axes) or phrase("none")


def _how_to_read(dataset: Dataset, layout: Layout) -> Iterator[tuple[str, str]]:
    yield phrase("Totals"), phrase("The code _T means the total along a variable.")
    for note in dataset.all_notes:
        yield phrase("Note"), note
    yield phrase("Ranges"), _RANGES
    if layout.percent is not None:
        yield phrase("Percentages"), _PERCENT[layout.percent]
        yield phrase("Percentages"), _PERCENT_NOTE
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
