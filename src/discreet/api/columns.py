"""The tables of a population, and the variables and codelists that cubes need of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.api.cubes import Axis, Bands, Cube
from discreet.api.declaration import Declaration
from discreet.api.noise import Hierarchical, Noise, Swap
from discreet.errors import mistake
from discreet.io.column_names import shown_names, similar
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.io.memory import arrow_table, encoded_texts
from discreet.population.codes import ColumnValues, column_values, flat_codes, nested_codes, with_missing
from discreet.population.encode import is_text
from discreet.programme import eu2021
from discreet.programme.codelist import Code, Codelist, codelist, read_codelist
from discreet.programme.columns import plain_name, unused_name
from discreet.programme.filter import mentioned
from discreet.programme.population import ID_KEYS
from discreet.programme.proposal import DraftVariable
from discreet.programme.section import with_home
from discreet.programme.sources import (
    DATABASE_FILES,
    SERVERS,
    DeclaredSource,
    MemorySource,
    Source,
    resolve_source,
)

PLAIN = re.compile("[A-Za-z][A-Za-z0-9_]*")
AnyTable = Any  # a data frame, an Arrow table, a DuckDB relation, a path, or a source of a programme file
Codes = Mapping[str, str] | Sequence[str] | str | Path | Codelist


@dataclass(eq=False, repr=False)
class Tables:
    """The tables of a population and what its caller states about their columns."""

    population: dict[str, Any] = field(default_factory=dict)  # the [population] section
    sources: dict[str, Source] = field(default_factory=dict)  # unit -> its records
    chains: list[tuple[str, ...]] = field(default_factory=list)  # columns that nest, coarse to fine
    codelists: Mapping[str, Codes] = field(default_factory=dict)
    missing: str | Mapping[str, str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    of: str | Mapping[str, str] | None = None  # whose attribute a column is
    further: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    drafts: Mapping[str, DraftVariable] = field(
        default_factory=dict
    )  # column -> as ``discreet init`` proposes it
    declared: Declaration | None = None  # the programme file that it is from
    headers: dict[str, list[str]] = field(default_factory=dict)  # unit -> its columns, read so far
    values: dict[tuple[str, str], ColumnValues] = field(default_factory=dict)  # found so far

    def take(self, unit: str, table: AnyTable) -> None:
        """Take over one table: in memory, or as a programme file declares it."""
        if isinstance(table, str | Path):
            text = str(table)
            if text.partition("://")[0] in (*SERVERS, *DATABASE_FILES):
                remedy = f'name its table, too: {unit}={{"uri": "..", "table": "{unit}"}}'
                raise mistake("Population", unit, "a database address", remedy)
            is_address = "://" in text or text.startswith("file:/")
            entry: str | dict[str, Any] = text if is_address else str(with_home(text).absolute())
        elif isinstance(table, Mapping) and set(table) <= set(DeclaredSource.model_fields):
            entry = dict(table)
        else:
            if isinstance(table, Mapping) and {"uri", "file"} & set(table):
                wrong = ", ".join(sorted(set(map(str, table)) - set(DeclaredSource.model_fields)))
                known = ", ".join(DeclaredSource.model_fields)
                raise mistake(
                    "Population", unit, f"a source with unknown keys: {wrong}", f"its keys are {known}"
                )
            self.sources[unit] = MemorySource(unit, arrow_table(table, unit))
            self.population[unit] = f"{unit}.parquet"
            return
        self.population[unit] = entry
        self.sources[unit] = resolve_source(source_entry(entry), Path.cwd(), "Population", unit)

    def with_records(self, tables: Mapping[str, AnyTable]) -> Tables:
        """The same with other records in some tables."""
        sources = {unit: MemorySource(unit, arrow_table(table, unit)) for unit, table in tables.items()}
        return replace(self, sources={**self.sources, **sources}, values={}, headers={})

    def records(self, unit: str) -> Records:
        """The opened table of a unit."""
        return open_source(self.sources[unit], unit)

    def columns(self, unit: str) -> list[str]:
        """The names of the columns of a unit's table."""
        if unit not in self.headers:
            self.headers[unit] = self.records(unit).schema.names
        return self.headers[unit]

    def names(self) -> dict[str, str]:
        """The variable of each column: its name, without other characters than letters, digits and _."""
        columns = dict.fromkeys(column for unit in self.sources for column in self.columns(unit))
        found: dict[str, str] = {}
        for column in sorted(
            columns, key=lambda one: PLAIN.fullmatch(one) is None
        ):  # plain names stay as they are
            plain = column if PLAIN.fullmatch(column) else plain_name(column)
            found[column] = unused_name(plain, found.values())
        return found

    def units_with(self, column: str) -> list[str]:
        """The units whose tables have a column."""
        return [unit for unit in self.sources if column in self.columns(unit)]

    def require_column(self, column: str) -> list[str]:
        """The tables that have a column; an unknown one is refused with the most similar name."""
        units = self.units_with(column)
        if not units:
            names = [name for unit in self.sources for name in shown_names(self.records(unit), unit)]
            remedy = similar(column, names, "the tables have")
            raise mistake("Population", "", f"unknown column {column!r}", remedy)
        return units

    def encode(self, unit: str, columns: Sequence[str]) -> None:
        """Encode columns of text in memory once, so that no value is looked up twice."""
        source = self.sources[unit]
        if not isinstance(source, MemorySource):
            return
        table = source.table
        text = {column: table.column(column) for column in columns if _is_text(table, column)}
        for column, coded in encoded_texts(text).items():
            table = table.set_column(table.schema.get_field_index(column), column, coded)
        self.sources[unit] = replace(source, table=table)

    def encode_axes(self, cubes: Iterable[Cube]) -> None:
        """Encode the columns of text of some cubes whose codes follow from the records."""
        chains = {column: chain for chain in self.chains for column in chain}
        named = dict.fromkeys(axis for cube in cubes for axis in cube.axes if isinstance(axis, str))
        columns = dict.fromkeys(column for axis in named for column in chains.get(axis, (axis,)))
        for unit in self.sources:
            known = set(self.columns(unit)) - set(self.codelists)
            self.encode(unit, [column for column in columns if column in known])

    def values_of(self, unit: str, column: str) -> ColumnValues:
        """The distinct values of a column."""
        if (unit, column) not in self.values:
            self.encode(unit, [column])
            self.values |= {
                (unit, name): one for name, one in column_values(self.records(unit), [column]).items()
            }
        return self.values[unit, column]

    def declared_missing(self, column: str) -> str | None:
        """The code of records without a value, as it is declared."""
        return self.missing if isinstance(self.missing, str) else (self.missing or {}).get(column)

    def draft(self, column: str) -> DraftVariable | None:
        """The drafted variable of a column; none where its codes or the code of its gaps are stated."""
        found = self.drafts.get(column)
        is_stated = column in self.codelists or self.declared_missing(column) is not None
        return None if is_stated else found

    def missing_code(self, column: str, has_gaps: bool) -> str | None:
        """The same for a column whose values are known: gaps without a code are refused."""
        code = self.declared_missing(column)
        if code is None and has_gaps:
            remedy = f'give them a code: missing={{"{column}": "unknown"}}'
            raise mistake("Population", f"column {column}", "some records have no value", remedy)
        return code if has_gaps or not isinstance(self.missing, str) else None


class Naming:
    """Names the variables of some cubes, and infers the codelists that they need."""

    def __init__(self, tables: Tables) -> None:
        self._of, self._declared = tables, tables.declared
        own = {} if self._declared is None else dict(self._declared.content.get("variables", {}))
        self.variables: dict[str, Any] = own
        self.codelists: dict[str, Codelist] = {}
        self._names = {} if self._declared is not None else tables.names()  # column -> variable
        self._columns_of = {name: column for column, name in self._names.items()}
        self._bands: dict[str, Bands] = {}
        self._columns: set[str] = set()

    def cube(self, cube: Cube) -> dict[str, Any]:
        """A cube as a programme file declares it."""
        axes = [self.axis(axis) for axis in cube.axes]
        if cube.where:
            self.mentions(cube.where)
        self._columns |= {column for column in (cube.count, cube.weight) if column}
        given = {"id": cube.id, "title": cube.title or None, "unit": cube.unit, "axes": axes}
        given |= {"base": cube.where, "count": cube.count, "weight": cube.weight}
        return {key: value for key, value in given.items() if value is not None}

    def mentions(self, text: str) -> None:
        """Declare the variables that a filter names."""
        for name in sorted(mentioned(text) - set(self.variables)):
            self.axis(name)

    def swap(self, swap: Swap) -> dict[str, Any]:
        """A rule of swapping as a programme file declares it, with its variables, except those of compositions."""
        declared: dict[str, Any] = swap.declared()
        declared["similar"] = [
            [self.axis(part) if isinstance(part, str) else part for part in profile]
            for profile in declared["similar"]
        ]
        if swap.risk:
            declared["risk"] = [self.axis(name) for name in swap.risk]
        if swap.exclude:
            self.mentions(swap.exclude)
        self._columns |= {*swap.carry, *([swap.risk_column] if swap.risk_column else [])}
        return declared

    def noise(self, noise: Noise) -> None:
        """Declare the geography and the histogram of hierarchical noise, which no cube need have."""
        if isinstance(noise, Hierarchical) and noise.histogram:
            for axis in (noise.geography, *noise.histogram):
                if isinstance(axis, str | Bands):
                    self.axis(axis)

    def axis(self, axis: Axis) -> str:
        """The breakdown of an axis, whose variable is declared if it is not yet."""
        if isinstance(axis, Bands):
            return self._banded(axis)
        variable, dot, level = axis.partition(".")
        column = self._column(axis)
        if column is not None and self._names[column] in self.variables:
            return self._names[column]
        if column is None and variable in self.variables:
            return axis
        for chain in self._of.chains:
            if len(chain) > 1 and column in chain:
                return self._nested(chain, column)
        if column is None and dot and self._column(variable) is not None:
            return f"{self.axis(variable)}.{level}"
        if self._declared is not None:
            levels = [name for name, entry in self.variables.items() if axis in entry.get("breakdowns", {})]
            if len(levels) == 1:
                return f"{levels[0]}.{axis}"
            if "standard" in self._declared.content and variable in eu2021.variables():
                self.variables[variable] = {"column": eu2021.column(variable)}
                return axis
            known = ", ".join(self.variables)
            raise mistake(
                self._declared.path, "variables", f"unknown variable {variable!r}", f"choose from {known}"
            )
        return self._flat(axis if column is None else column)

    def _column(self, name: str) -> str | None:
        """The column of a name, or of the name of its variable; None where a programme file declares variables."""
        return name if name in self._names else self._columns_of.get(name)

    def sources(self) -> dict[str, Source]:
        """The tables that replace those of a file, those in memory identified by the columns that are used."""
        used = {*self._columns, *self._of.population["geography"], *self._of.population.get("weights", ())}
        used |= {self._of.population.get(key) for key in (*ID_KEYS.values(), "record_key")}
        used |= {entry.get("column") or name.lower() for name, entry in self.variables.items()}
        used |= set(self._of.population.get("flags", ()))
        found: dict[str, Source] = {}
        for unit, source in self._of.sources.items():
            if isinstance(source, MemorySource):
                found[unit] = replace(source, used=frozenset(filter(None, used)))
            elif self._declared is None:
                found[unit] = source
        return found

    def _flat(self, column: str) -> str:
        """A column whose codes are its values, or those that are given."""
        of = self._of
        units, name = of.require_column(column), self._names[column]
        given = of.codelists.get(column)
        if (draft := of.draft(column)) is not None:
            self._add_draft(name, draft)
        elif given is None:
            values = [of.values_of(unit, column) for unit in units]
            code = of.missing_code(column, any(one.has_gaps for one in values))
            rows = flat_codes(values, code)
            _require_values(column, rows)
            self._add(name, column, codelist(name, rows), code)
        else:
            code = of.declared_missing(column)
            self._add(name, column, _given(name, given, code), code)
        return name

    def _nested(self, chain: tuple[str, ...], axis: str) -> str:
        """A column of a hierarchy: a level of the variable of its finest column."""
        of, column = self._of, chain[-1]
        name = self._names[column]
        if name not in self.variables:
            units = [
                unit for unit in of.require_column(column) if set(chain) <= set(of.records(unit).schema.names)
            ]
            if not units:
                lacking = [one for one in chain if not of.units_with(one)] or list(chain)
                of.require_column(lacking[0])
                value = f"no table has all of {', '.join(chain)}"
                raise mistake("Population", "hierarchies", value, "give columns of one table")
            given = of.codelists.get(column)
            if (draft := of.draft(column)) is not None and draft.levels == chain:
                code, tree = draft.missing, codelist(name, draft.rows)
            elif given is None:
                for unit in units:
                    of.encode(unit, chain)
                rows, has_gaps = nested_codes((of.records(unit) for unit in units), chain)
                _require_values(column, rows)
                code = of.missing_code(column, has_gaps)
                tree = codelist(name, with_missing(rows, code))
            else:
                code = of.declared_missing(column)
                tree = _given(name, given, code)
            levels = {self._names[one]: level for level, one in enumerate(chain, start=1)}
            self._add(name, column, tree, code, levels)
        return name if axis == column else f"{name}.{self._names[axis]}"

    def _banded(self, axis: Bands) -> str:
        name = plain_name(axis.name) if axis.name else self._names.get(axis.column) or plain_name(axis.column)
        if name in self._bands and self._bands[name] == axis:
            return name
        known = self.variables.get(name, {})
        if axis.column == known.get("column") and list(axis.limits) == known.get("bands") and axis.on is None:
            return name  # as the programme file declares it
        if name in self.variables:
            remedy = f'name one of the two: bands("{axis.column}", .., name="{name}_groups")'
            raise mistake("", f"bands({axis.column!r})", f"{name} is declared in another way, too", remedy)
        if self._declared is None:
            self._of.require_column(axis.column)
        self._bands[name] = axis
        code = axis.missing or self._of.declared_missing(axis.column)
        self.variables[name] = {
            "column": axis.column,
            "bands": list(axis.limits),
            **({} if axis.on is None else {"reference_day": axis.on.isoformat()}),
            **({} if code is None else {"missing": code}),
            **self._described(axis.column),
        }
        return name

    def _add_draft(self, name: str, draft: DraftVariable) -> None:
        """A variable as ``discreet init`` drafts it, with the name of its column."""
        finest = max(draft.breakdowns.values(), default=1)  # is named by its column, as in other populations
        levels = {name if level == finest else one: level for one, level in draft.breakdowns.items()}
        labels = {one: text for one, text in draft.breakdown_labels.items() if one in levels}
        keys = {
            "column": draft.column,
            "codelist": f"codelists/{name.lower()}.csv" if draft.rows else None,
            "bands": list(draft.bands) or None,
            "missing": draft.missing,
            "missing_values": list(draft.missing_values) or None,
            "reference_day": draft.reference_day and draft.reference_day.isoformat(),
            "breakdowns": levels if finest > 1 else None,
            "breakdown_labels": labels or None,
            "label": draft.label or None,
        }
        if draft.rows:
            self.codelists[name] = codelist(name, draft.rows)
        declared = {key: value for key, value in keys.items() if value is not None}
        self.variables[name] = {**declared, **self._described(draft.column)}

    def _add(
        self,
        name: str,
        column: str,
        tree: Codelist,
        missing: str | None,
        levels: Mapping[str, int] | None = None,
    ) -> None:
        if levels is None and tree.depth > 1:
            levels = {f"level{level}": level for level in range(1, tree.depth)} | {name: tree.depth}
        self.codelists[name] = tree
        self.variables[name] = {
            "column": column,
            "codelist": f"codelists/{name.lower()}.csv",
            **({} if missing is None else {"missing": missing}),
            **({} if levels is None else {"breakdowns": dict(levels)}),
            **self._described(column),
        }

    def _described(self, column: str) -> dict[str, Any]:
        given = self._of.of
        described = {
            "label": self._of.labels.get(
                column, None if self._names.get(column, column) == column else column
            ),
            "of": given if given is None or isinstance(given, str) else given.get(column),
        }
        stated = {key: value for key, value in described.items() if value is not None}
        return {**stated, **self._of.further.get(column, {})}


def _require_values(column: str, rows: Sequence[Code]) -> None:
    if not rows:
        remedy = f'give records, or the codes: codelists={{"{column}": ["A", "B"]}}'
        raise mistake("Population", f"column {column}", "no record has a value", remedy)


def _is_text(table: pa.Table, column: str) -> bool:
    return is_text(table.schema.field(column).type)


def _given(name: str, codes: Codes, missing: str | None) -> Codelist:
    """The codelist that a caller gives."""
    if isinstance(codes, Codelist):
        return codes
    if isinstance(codes, str | Path):
        return read_codelist(Path(codes), name)
    rows = (
        [Code(str(code), "", str(label)) for code, label in codes.items()]
        if isinstance(codes, Mapping)
        else [Code(str(code), "", str(code)) for code in codes]
    )
    return codelist(name, with_missing(rows, missing), f"codelists[{name!r}]")


def listed(key: str, names: Sequence[str]) -> list[str]:
    """Names of columns; a single text would be taken for a list of letters."""
    if isinstance(names, str):
        raise mistake("Population", key, repr(names), f'give a list: {key}=["{names}"]')
    return list(names)


def source_entry(entry: str | Mapping[str, Any]) -> str | DeclaredSource:
    """A source as a programme file declares it."""
    if isinstance(entry, str):
        return entry
    try:
        return DeclaredSource(**entry)
    except ValueError:
        known = ", ".join(DeclaredSource.model_fields)
        raise mistake(
            "Population", "", "a source with a wrong value", f"its keys are {known}, each a text"
        ) from None
