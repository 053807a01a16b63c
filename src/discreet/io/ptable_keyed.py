"""P-table files that list keys: ONS (pcv,ckey,pvalue), Cantabular (with a-b ranges) and the SuperSTAR matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.io.whole_numbers import whole_numbers
from discreet.maths.cells.lookup import KEYS, MOST_CHANGE, Lookup, lookup_of_matrix, lookup_of_rows, matrix_of

ONS_COLUMNS = ("pcv", "ckey", "pvalue")
CANTABULAR_COLUMNS = ("cell_value", "cell_key", "perturbation")
ONS_LAST, ONS_FROM, ONS_LENGTH = 750, 501, 250
SUPERSTAR_KEYS, SMALL_N = 256, 10
SUPERSTAR_COLUMNS = 30
MAX_COUNT = 10_000  # more counts are a mistake, and would not fit in memory
SHOWN = 10  # problems of one kind that are reported individually
_UNSET = np.iinfo(np.int64).min


@dataclass(frozen=True)
class WrapRule:
    """Counts above the last row use row first + (count - first) mod length; length 1 repeats the last row."""

    first: int
    length: int


def read_listed(
    path: Path, columns: tuple[str, str, str], modulus: int | None, wrap: WrapRule | None
) -> Lookup:
    """Read lines of count, key and change; counts and keys may be inclusive ranges a-b.

    The modulus is the largest key + 1, and the rule for larger counts is that of ONS where the table ends with
    count 750; explicit arguments must agree with the file. A count of zero stays zero.
    """
    counts, keys, changes = _listed(path, columns)
    last, found = int(counts[:, 1].max()), int(keys[:, 1].max()) + 1
    if modulus is not None and modulus != found:
        raise mistake(path, "modulus", f"the largest key is {found - 1}", f"list the keys 0..{modulus - 1}")
    _demand_modulus(path, found)
    if last > MAX_COUNT:
        raise mistake(
            path, columns[0], str(last), f"list counts up to {MAX_COUNT} and a rule for larger ones"
        )
    grid = _grid(path, counts, keys, changes, (last + 1, found))
    return _looked_up(path, grid, _rule(path, last, wrap))


def _rule(path: Path, last: int, wrap: WrapRule | None) -> WrapRule:
    if wrap is None and last == ONS_LAST:
        return WrapRule(ONS_FROM, ONS_LENGTH)
    if wrap is None:
        remedy = (
            f"give the last rows that larger counts share by discreet ptable convert --wrap FROM:LENGTH; {last}:1 "
            "repeats the last row"
        )
        raise mistake(path, "wrap rule", f"the table ends with count {last}", remedy)
    return wrap


def _demand_modulus(path: Path, modulus: int) -> None:
    if modulus > 2**16 or KEYS % modulus:
        raise mistake(path, "modulus", f"the largest key is {modulus - 1}", "list the keys 0..255 or 0..4095")


def _listed(
    path: Path, columns: tuple[str, str, str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    table = _strings(path, columns)
    counts, keys = (_ranges(path, table, name) for name in columns[:2])
    changes = _integers(path, table, columns[2])
    if not len(changes):
        raise mistake(path, "", "no lines below the header", "give a line for every count and key")
    return counts, keys, changes


def _strings(path: Path, columns: tuple[str, str, str]) -> pa.Table:
    ragged: list[Problem] = []
    try:
        path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise mistake(path, f"byte {error.start}", "is not UTF-8", "save the file as UTF-8") from None

    def refuse(row: pacsv.InvalidRow) -> str:
        found = f"{row.actual_columns} values for {row.expected_columns} columns"
        ragged.append(Problem(str(path), f"line {row.number}", found, "give one value for each column"))
        return "skip"

    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(use_threads=False),  # with threads, lines have no numbers
            parse_options=pacsv.ParseOptions(invalid_row_handler=refuse),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), include_columns=list(columns)
            ),
        )
    except (pa.ArrowInvalid, KeyError):
        raise mistake(path, "header", "not a CSV of these columns", f"give {','.join(columns)}") from None
    if ragged:
        raise Mistakes(_some(path, ragged))
    return table


def _ranges(path: Path, table: pa.Table, name: str) -> NDArray[np.int64]:
    """Read a or a-b as the pair (a, a) or (a, b)."""
    text = table[name].combine_chunks()
    plain = _plain_integers(text)
    if plain is not None and (plain >= 0).all():
        return np.stack([plain, plain], axis=1)
    parts = pc.extract_regex(text, r"^\s*(?P<first>\d{1,9})\s*(?:-\s*(?P<last>\d{1,9}))?\s*$")
    _demand(
        path, name, pc.is_valid(parts), text, "give a whole number of up to 9 digits, or a range a-b of them"
    )
    first, last = parts.field("first"), parts.field("last")
    last = pc.if_else(pc.equal(last, ""), first, last)
    pairs = np.stack([part.cast(pa.int64()).to_numpy(zero_copy_only=False) for part in (first, last)], axis=1)
    _demand(path, name, pa.array(pairs[:, 0] <= pairs[:, 1]), text, "give the smaller end of the range first")
    return pairs


def _integers(path: Path, table: pa.Table, name: str) -> NDArray[np.int64]:
    text = table[name].combine_chunks()
    plain = _plain_integers(text)
    if plain is not None:
        return plain
    _demand(
        path,
        name,
        pc.match_substring_regex(text, r"^\s*[+-]?\d{1,9}\s*$"),
        text,
        "give a whole number of up to 9 digits",
    )
    cleaned = pc.utf8_ltrim(pc.utf8_trim_whitespace(text), "+")
    return np.asarray(cleaned.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _plain_integers(text: pa.Array) -> NDArray[np.int64] | None:
    """Read plain whole numbers quickly; None if any value needs the full parser."""
    try:
        return np.asarray(whole_numbers(text).to_numpy(zero_copy_only=True))
    except pa.ArrowInvalid:
        return None


def _demand(path: Path, name: str, right: pa.Array, text: pa.Array, remedy: str) -> None:
    wrong = np.flatnonzero(~pc.fill_null(right, False).to_numpy(zero_copy_only=False))
    if len(wrong):
        problems = [
            Problem(str(path), f"line {at + 2}", f"{name} {text[at].as_py()!r}", remedy)
            for at in wrong[: SHOWN + 1]
        ]
        raise Mistakes(_some(path, problems, len(wrong)))


def _some(path: Path, problems: list[Problem], total: int | None = None) -> Iterator[Problem]:
    yield from problems[:SHOWN]
    more = (len(problems) if total is None else total) - SHOWN
    if more > 0:
        yield Problem(str(path), "", f"{more} more like these", "correct the file as a whole")


def _grid(
    path: Path,
    counts: NDArray[np.int64],
    keys: NDArray[np.int64],
    changes: NDArray[np.int64],
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """Expand the lines to the matrix (count, key) -> change; gaps and duplicates are mistakes."""
    wide, tall = keys[:, 1] - keys[:, 0] + 1, counts[:, 1] - counts[:, 0] + 1
    sizes = wide * tall
    if int(sizes.sum()) > 2 * shape[0] * shape[1]:
        raise mistake(path, "", "far more entries than counts and keys", "list each count and key once")
    line = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(line)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    cells = (counts[line, 0] + within // wide[line]) * shape[1] + keys[line, 0] + within % wide[line]
    times = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    problems = [*_cover_problems(path, times, line, cells)]
    if problems:
        raise Mistakes(problems)
    grid = np.full(shape[0] * shape[1], _UNSET)
    grid[cells] = changes[line]
    grid = grid.reshape(shape)
    if (grid[0] == _UNSET).all():
        grid[0] = 0
    return grid


def _cover_problems(
    path: Path, times: NDArray[np.int64], line: NDArray[np.int64], cells: NDArray[np.int64]
) -> Iterator[Problem]:
    twice = np.flatnonzero(times.ravel()[cells] > 1)
    if len(twice):
        first = cells[twice[0]]
        again = line[twice[cells[twice] == first][1]] + 2
        where = f"count {first // times.shape[1]}, key {first % times.shape[1]}"
        yield Problem(
            str(path), f"line {again}", f"duplicate entry for {where}", "list each count and key once"
        )
    empty = [row for row in range(len(times)) if not times[row].all() and (row > 0 or times[row].any())]
    problems = [
        Problem(
            str(path),
            f"count {row}",
            f"no change for key {int(np.flatnonzero(times[row] == 0)[0])}",
            "list every key of every count from 1 to the last: a gap would publish true counts",
        )
        for row in empty
    ]
    yield from _some(path, problems)


def _looked_up(path: Path, grid: NDArray[np.int64], wrap: WrapRule) -> Lookup:
    if grid[0].any():
        raise mistake(
            path, "count 0", "a change of zero", "do not change zeros: the cell key method never does"
        )
    try:
        return lookup_of_matrix(grid, wrap.first, wrap.length)
    except Mistakes as wrong:
        raise Mistakes(
            Problem(str(path), problem.key.replace("row", "count", 1), problem.value, problem.remedy)
            for problem in wrong.problems
        ) from None


def read_superstar(path: Path, small_n: int = SMALL_N) -> Lookup:
    """Read the matrix with one line for each key and one column for each count from 1.

    Counts up to columns - small_n have their own column; any other count uses the column
    (count mod small_n) + columns + 1 - small_n (SuperSTAR documentation, discrete perturbation).
    """
    lines = [
        line for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines() if line.strip()
    ]
    matrix = _matrix(path, lines)
    columns = matrix.shape[1]
    if len(matrix) != SUPERSTAR_KEYS:
        raise mistake(path, "", f"{len(matrix)} lines", f"give {SUPERSTAR_KEYS} lines, one for each key")
    if not 1 <= small_n <= min(SMALL_N, columns):
        raise mistake(path, "SmallN", str(small_n), f"give 1 to {min(SMALL_N, columns)}")
    served = [_superstar_column(count, columns, small_n) for count in range(1, columns + 1)]
    grid = np.vstack([np.zeros(len(matrix), dtype=np.int64), matrix.T[np.array(served) - 1]])
    return _looked_up(path, grid, WrapRule(columns - small_n + 1, small_n))


def _superstar_column(count: int, columns: int, small_n: int) -> int:
    return count if count <= columns - small_n else count % small_n + columns + 1 - small_n


def _matrix(path: Path, lines: list[str]) -> NDArray[np.int64]:
    rows: list[list[int]] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append([_small(value) for value in line.replace(";", ",").split(",")])
        except ValueError:
            remedy = f"give whole numbers within {MOST_CHANGE:,}"
            problems.append(Problem(str(path), f"line {number}", "values that are not whole numbers", remedy))
            continue
        if len(rows[-1]) != len(rows[0]):
            found = f"{len(rows[-1])} values, {len(rows[0])} in the first line"
            problems.append(Problem(str(path), f"line {number}", found, "give one value for each count"))
    if problems or not rows:
        raise Mistakes(_some(path, problems or [Problem(str(path), "", "no lines", "give the matrix")]))
    return np.array(rows, dtype=np.int64)


def _small(text: str) -> int:
    change = int(text)
    if abs(change) > MOST_CHANGE:
        raise ValueError(text)
    return change


def write_ons(path: Path, lookup: Lookup) -> None:
    """Write one line for each count 1..750 and key."""
    matrix = matrix_of(extended(lookup, WrapRule(ONS_FROM, ONS_LENGTH)))[1:]
    counts, keys = np.indices(matrix.shape)
    columns = [pa.array(array.ravel()) for array in (counts + 1, keys, matrix)]
    options = pacsv.WriteOptions(quoting_style="none", quoting_header="none")
    pacsv.write_csv(pa.table(columns, names=list(ONS_COLUMNS)), path, options)


def write_cantabular(path: Path, lookup: Lookup) -> None:
    """Write one line for each count 1..750 and range of keys."""
    rule = WrapRule(ONS_FROM, ONS_LENGTH)
    # through the matrix, so that neighbouring intervals of one change become one range
    longer = lookup_of_matrix(matrix_of(extended(lookup, rule)), rule.first, rule.length)
    lines = [",".join(CANTABULAR_COLUMNS)]
    for count in range(1, longer.last_row + 1):
        first = 0
        for at in range(longer.offsets[count], longer.offsets[count + 1]):
            last = int(longer.upper[at]) - 1
            keys = str(first) if first == last else f"{first}-{last}"
            lines.append(f"{count},{keys},{int(longer.change[at])}")
            first = last + 1
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_superstar(path: Path, lookup: Lookup, small_n: int = SMALL_N) -> None:
    """Write the matrix of 256 lines, with at least 30 columns and more if the table needs them."""
    if lookup.modulus != SUPERSTAR_KEYS:
        raise mistake(path, "modulus", str(lookup.modulus), f"give a table of {SUPERSTAR_KEYS} keys")
    columns = max(SUPERSTAR_COLUMNS, lookup.last_row + small_n - 1)
    if lookup.wrap_length == small_n:
        columns = lookup.last_row
    grid = matrix_of(extended(lookup, WrapRule(columns - small_n + 1, small_n)))
    matrix = np.empty((SUPERSTAR_KEYS, columns), dtype=np.int64)
    for count in range(1, columns + 1):
        matrix[:, _superstar_column(count, columns, small_n) - 1] = grid[count]
    lines = [",".join(str(change) for change in line) for line in matrix.tolist()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def extended(lookup: Lookup, wrap: WrapRule) -> Lookup:
    """Extend a table to the rows that another rule for large counts needs, without changing any result."""
    if (lookup.wrap_from, lookup.wrap_length) == (wrap.first, wrap.length):
        return lookup
    if lookup.wrap_length != 1 or lookup.last_row > wrap.first:
        raise mistake(
            "",
            "wrap rule",
            f"larger counts share the rows from {lookup.wrap_from} on, {lookup.wrap_length} of them",
            f"the target format shares {wrap.length} rows from {wrap.first} on; convert through the R format",
        )
    rows = [_pieces(lookup, min(row, lookup.last_row)) for row in range(wrap.first + wrap.length)]
    return lookup_of_rows(rows, lookup.modulus, wrap.first, wrap.length)


def _pieces(lookup: Lookup, row: int) -> list[tuple[int, int]]:
    inside = slice(lookup.offsets[row], lookup.offsets[row + 1])
    lengths = np.diff(np.concatenate([[0], lookup.upper[inside].astype(np.int64)]))
    return list(zip(lookup.change[inside].tolist(), lengths.tolist(), strict=True))
