"""Codelists in files: CSV, tau-ARGUS hierarchies and the level tables of sdcTable.

It owns the file formats; whether the codes form a tree is checked by codelist.

Accepted:

* CSV with a header that has ``code`` and may have ``parent`` and ``label``; other columns are ignored. Comma
  or semicolon, UTF-8 with or without a byte-order mark. A line for ``_T`` and parents ``_T`` mean the total.
* tau-ARGUS ``.hrc``: one code per line, indented by repeating a lead character (``@`` unless told otherwise);
  codes directly below the total have none.
* sdcTable and sdcHierarchies: a column of ``@`` signs, then the code (``@@;A``, ``@@,A``, with or without
  quotes, header and row names), or both in one word (``@@A``, ``@@ A``). One ``@`` is the grand total.

In the last two a single root is the total, not a code, when it is written with a lead character or is called
``Total`` or ``_T``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import Mistakes, Problem, mistake
from discreet.schema.codelist import TOTAL, Code, Codelist, codelist

TOTAL_NAMES = {TOTAL.lower(), "total"}


@dataclass(frozen=True)
class _Entry:
    """A code with the number of lead characters before it."""

    line: int
    depth: int
    code: str


def read_codelist(path: Path, name: str, lead: str = "@") -> Codelist:
    """Read a codelist file of any accepted format as a tree."""
    return codelist(name, read_codes(path, lead), str(path))


def read_codes(path: Path, lead: str = "@") -> list[Code]:
    """Read the lines of a codelist file of any accepted format."""
    text = _text(path)
    separator = _level_separator(text, lead)
    header = _header(text)
    if path.suffix.lower() != ".hrc" and "code" in header and (separator is None or "parent" in header):
        return list(_csv_codes(path, text))
    if path.suffix.lower() == ".csv" and separator is None:
        raise mistake(path, "line 1", f"columns {', '.join(header)}", "name the columns code,parent,label")
    if separator is None:
        return _nested(path, _indented(text, lead))
    return _nested(path, _level_table(path, text, lead, separator))


def write_codelist(path: Path, tree: Codelist) -> None:
    """Write a codelist as CSV code,parent,label."""
    with path.open("w", encoding="utf-8", newline="") as out:
        # a lone carriage return is not quoted by itself, and would end the line when read
        strange = any("\r" in text for text in (*tree.codes, *tree.labels))
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL if strange else csv.QUOTE_MINIMAL)
        writer.writerow(("code", "parent", "label"))
        for code, parent, label in zip(tree.codes, tree.parents, tree.labels, strict=True):
            writer.writerow((code, tree.codes[parent] if parent >= 0 else "", label))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise mistake(path, "", f"cannot be read: {reason}", "correct the path of the codelist") from None
    except UnicodeDecodeError as error:
        raise mistake(path, f"byte {error.start}", "is not UTF-8", "save the codelist as UTF-8") from None


def _header(text: str) -> list[str]:
    first = next((line for line in io.StringIO(text, newline=None) if line.strip()), "")
    return [field.strip().strip('"').lower() for field in first.split(_csv_delimiter(first))]


def _csv_delimiter(header: str) -> str:
    return ";" if ";" in header and "," not in header else ","


def _csv_codes(path: Path, text: str) -> Iterator[Code]:
    delimiter = _csv_delimiter(next(line for line in io.StringIO(text, newline=None) if line.strip()))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    problems: list[Problem] = []
    header: list[str] = []
    try:
        for row in reader:
            if not row:
                continue
            if not header:
                header = [field.strip().lower() for field in row]
            elif len(row) > len(header):
                remedy = "put quotes around a label that holds the separator"
                value = f"{len(row)} fields instead of {len(header)}"
                problems.append(Problem(str(path), f"line {reader.line_num}", value, remedy))
            else:
                yield from _csv_code(dict(zip(header, row, strict=False)))
    except csv.Error as error:
        problems.append(
            Problem(
                str(path), f"line {reader.line_num}", f"broken CSV ({error})", "close and double the quotes"
            )
        )
    if problems:
        raise Mistakes(problems)


def _csv_code(row: dict[str, str]) -> Iterator[Code]:
    code, parent = row.get("code", ""), row.get("parent", "")
    if code != TOTAL or parent:
        yield Code(code, "" if parent == TOTAL else parent, row.get("label", ""))


def _level_separator(text: str, lead: str) -> str | None:
    """What stands between the column of lead characters and the codes, if there is such a column."""
    column = re.compile(rf'^(?:"?\w*"?[;,\t])?"?{re.escape(lead)}+"?\s*([;,\t])', re.MULTILINE)
    found = column.search(text)
    return found[1] if found else None


def _level_table(path: Path, text: str, lead: str, separator: str) -> Iterator[_Entry]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    for number, row in enumerate(row for row in reader if any(field.strip() for field in row)):
        fields = [field.strip() for field in row]
        levels = [place for place, field in enumerate(fields[:2]) if field and set(field) == {lead}]
        if levels and len(fields) > levels[0] + 1:
            yield _Entry(reader.line_num, len(fields[levels[0]]), fields[levels[0] + 1])
        elif number > 0:  # the first line may be a header
            raise mistake(
                path,
                f"line {reader.line_num}",
                f"no level before {separator.join(row)!r}",
                f"write {lead * 2}{separator}code",
            )


def _indented(text: str, lead: str) -> Iterator[_Entry]:
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if line.strip():
            code = line.rstrip().lstrip(lead) if lead.isspace() else line.strip().lstrip(lead)
            depth = len(line.rstrip()) - len(code) if lead.isspace() else len(line.strip()) - len(code)
            yield _Entry(number, depth, code.strip())


def _nested(path: Path, found: Iterator[_Entry]) -> list[Code]:
    """Give every entry the last one above it that is indented less as its parent."""
    entries = list(found)
    if not entries:
        raise mistake(path, "", "holds no codes", "write one code per line")
    problems = list(_depth_problems(path, entries))
    if problems:
        raise Mistakes(problems)
    top = entries[0].depth
    total = _total(entries)
    above: dict[int, str] = {}
    codes = []
    for entry in entries:
        above[entry.depth] = "" if entry is total else entry.code
        if entry is not total:
            codes.append(Code(entry.code, above[entry.depth - 1] if entry.depth > top else "", ""))
    return codes


def _total(entries: Sequence[_Entry]) -> _Entry | None:
    first, rest = entries[0], entries[1:]
    single = bool(rest) and all(entry.depth > first.depth for entry in rest)
    return first if single and (first.depth > 0 or first.code.lower() in TOTAL_NAMES) else None


def _depth_problems(path: Path, entries: Sequence[_Entry]) -> Iterator[Problem]:
    before = top = entries[0].depth
    for entry in entries:
        where = f"line {entry.line}"
        if not entry.code:
            yield Problem(
                str(path), where, "a level without a code", "write the code after the lead characters"
            )
        if entry.depth > before + 1:
            remedy = "indent a code by at most one more than the line above"
            yield Problem(str(path), where, f"code {entry.code!r} skips a level", remedy)
        elif entry.depth < top:
            remedy = "start with a code of the highest level"
            yield Problem(str(path), where, f"code {entry.code!r} stands above the first code", remedy)
        before = entry.depth
