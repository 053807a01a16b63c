"""A population in a notebook: tables in memory or elsewhere, and the codelists that follow from their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

from discreet.api.arguments import names_arguments
from discreet.api.columns import AnyTable, Codes, Naming, Tables, listed, source_entry
from discreet.api.cubes import Cube
from discreet.api.declaration import Declaration
from discreet.api.noise import Noise, Swap
from discreet.api.programme import Programme
from discreet.errors import mistake
from discreet.population.look import look
from discreet.programme.inference import Decision, Role, Stated, infer
from discreet.programme.population import ID_KEYS, UNITS, DeclaredPopulation
from discreet.programme.programme import Supplied
from discreet.programme.proposal import propose
from discreet.programme.reading import DeclaredProgramme
from discreet.programme.sources import resolve_source

NAME = "notebook"
SECTIONS = tuple(DeclaredProgramme.model_fields)
PROTECTING = ("secret", "out", "register", "ledger", "account", "earlier", "sign", "threads", "progress")


class Population:
    """The records of a census or survey, and what their columns mean.

    Each table is anything with the Arrow PyCapsule interface (``__arrow_c_stream__``), a pandas or polars data frame, a
    DuckDB relation, an Arrow table, the path of Parquet or CSV files, or a source as a programme file declares it
    (``{"uri": "postgresql://host/census", "table": "persons"}``). Columns are not copied.

    ``geography`` and each entry of ``hierarchies`` are columns that nest, coarse to fine. The codes of other columns
    are their categories or their distinct values; ``codelists`` gives them instead: code -> label, a list of codes, or
    a file with code,parent,label. ``missing`` is the code of records without a value, for all columns or by column;
    without it a gap is an error. ``of`` states whose attribute a column is, as noise with a guarantee needs to know:
    person, family, household or dwelling, for all columns or by column. ``variables`` has further keys of the
    ``[variables]`` section of a programme file.

    Records are confidential: a population shows no count, is not pickled, and gives no data frame.

    >>> import discreet as ds
    >>> persons = {"pid": [1, 2, 3], "sex": ["F", "M", "F"], "lau": ["A", "A", "B"]}
    >>> ds.Population(persons=persons, person_id="pid", geography=["lau"])
    Population(persons; geography lau)
    """

    decisions: tuple[Decision, ...]  # of ``inferred``: what each column was taken for, and why

    @names_arguments
    def __init__(
        self,
        *,
        persons: AnyTable = None,
        households: AnyTable = None,
        families: AnyTable = None,
        dwellings: AnyTable = None,
        person_id: str | None = None,
        household_id: str | None = None,
        family_id: str | None = None,
        dwelling_id: str | None = None,
        record_key: str | None = None,
        geography: Sequence[str] = (),
        hierarchies: Iterable[Sequence[str]] = (),
        codelists: Mapping[str, Codes] | None = None,
        missing: str | Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        weights: Sequence[str] = (),
        of: str | Mapping[str, str] | None = None,
        variables: Mapping[str, Mapping[str, object]] | None = None,
        **further: object,
    ) -> None:
        """Take over the tables; ``further`` are keys of the ``[population]`` section, such as ``flags``."""
        self.decisions = ()
        given = {"persons": persons, "households": households, "families": families, "dwellings": dwellings}
        ids = (person_id, household_id, family_id, dwelling_id)
        places = listed("geography", geography)
        self._tables = tables = Tables(
            chains=[
                *([tuple(places)] if places else []),
                *(tuple(listed("hierarchies", one)) for one in hierarchies),
            ],
            codelists=dict(codelists or {}),
            missing=missing,
            labels=dict(labels or {}),
            of=of,
            further=dict(variables or {}),
        )
        for unit, table in given.items():
            if table is not None:
                tables.take(unit, table)
        if not tables.sources:
            raise mistake("Population", "", "no table of records", "give persons=, a data frame or a path")
        tables.population |= {
            **{key: column for key, column in zip(ID_KEYS.values(), ids, strict=True) if column is not None},
            **({"record_key": record_key} if record_key is not None else {}),
            "geography": places,
            **({"weights": listed("weights", weights)} if weights else {}),
            **further,
        }
        own = signature(type(self)).parameters
        _require_known(further, DeclaredPopulation.model_fields, own, "keys of a population")
        named = [column for chain in tables.chains for column in chain]
        named += [one for one in (*ids, record_key) if one is not None]
        named += [*tables.codelists, *tables.labels, *tables.further, *tables.population.get("weights", ())]
        for column in dict.fromkeys(named):
            tables.require_column(column)

    @classmethod
    @names_arguments
    def from_toml(cls, path: str | Path) -> Population:
        """The population, variables and codelists that a programme file declares; its cubes and noise are left out.

        >>> import discreet as ds
        >>> folder = getfixture("tmp_path") / "census"
        >>> _ = ds.synth(500, out=folder, tables=["3.1"])
        >>> ds.Population.from_toml(folder / "programme.toml")
        Population(persons, households, families, dwellings; geography nuts1 > nuts2 > nuts3 > lau)
        """
        return declared_population(Declaration.read(Path(path)))

    @classmethod
    @names_arguments
    def inferred(
        cls,
        *,
        persons: AnyTable = None,
        households: AnyTable = None,
        families: AnyTable = None,
        dwellings: AnyTable = None,
        age: str | None = None,
        **stated: Any,
    ) -> Population:
        """A population whose ids, geography and weights are found in the records, as ``discreet init`` finds them.

        ``stated`` are other arguments of ``Population``, and ``age`` is the column of ages or dates of birth: what they
        state is not inferred. Codelists are those of its draft, too: single years of age have groups (``age.L`` and
        ``age.M`` of a column ``age``), amounts have bands, and gaps a code. ``decisions`` has what each column was
        taken for, and why: review it before anything is published.

        >>> import discreet as ds
        >>> census = ds.Population.inferred(persons=ds.synth(2000).read("persons"), geography=["nuts3", "lau"])
        >>> census
        Population(persons; geography nuts3 > lau)
        >>> next(one.role.value for one in census.decisions if one.column == "pid")
        'id'
        """
        given = {"persons": persons, "households": households, "families": families, "dwellings": dwellings}
        tables = Tables()
        for unit, table in given.items():
            if table is not None:
                tables.take(unit, table)
        facts = [look(source, unit, unit) for unit, source in tables.sources.items()]
        geography, weights = stated.get("geography"), listed("weights", stated.get("weights") or ())
        found = infer(
            facts,
            Stated(
                geography=None if geography is None else tuple(listed("geography", geography)),
                person_id=stated.get("person_id"),
                household_id=stated.get("household_id"),
                age=age,
                weight=weights[0] if weights else None,
            ),
        )
        ids = {ID_KEYS[unit]: column for unit, column in found.ids.items() if column is not None}
        weighing = [one.column for one in found.decisions if one.role is Role.WEIGHT]
        population = cls(**given, **{"geography": found.geography, **ids, "weights": weighing, **stated})
        population.decisions = found.decisions
        population._tables.drafts = {one.column: one for one in propose(found).variables}
        return population

    @names_arguments
    def programme(
        self,
        cubes: Cube | Iterable[Cube],
        noise: Noise,
        *,
        swap: Swap | None = None,
        structural_zeros: Iterable[str] = (),
        gates: Mapping[str, object] | None = None,
        name: str = "release",
        title: str | None = None,
        disclose: str | None = None,
        consistent: bool = False,
        **further: Mapping[str, object],
    ) -> Programme:
        """The whole publication: these cubes of this population with this noise.

        ``further`` are other sections of a programme file, such as ``serve`` and ``limits``.
        """
        wanted = [cubes] if isinstance(cubes, Cube) else list(cubes) if isinstance(cubes, Iterable) else []
        if not wanted or not all(isinstance(cube, Cube) for cube in wanted):
            remedy = 'give Cube("lau", "sex"), or a list of them'
            raise mistake("", "cubes", "no cubes, or other objects than cubes", remedy)
        if not hasattr(noise, "declared") or isinstance(noise, type):
            given = "a class" if isinstance(noise, type) else f"an object of type {type(noise).__name__}"
            remedy = "give noise such as CellKey(V=2, D=5) or Geometric(epsilon=1)"
            raise mistake("", "noise", given, remedy)
        zeros = list(structural_zeros)
        tables, naming = self._tables, Naming(self._tables)
        tables.encode_axes(wanted)
        entries = [naming.cube(cube) for cube in wanted]
        for text in zeros:
            naming.mentions(text)
        swapping = {} if swap is None else {"swap": naming.swap(swap)}
        naming.noise(noise)
        own = [*signature(Population.programme).parameters, *PROTECTING]
        _require_known(further, SECTIONS, own, "sections of a programme")
        release = {"name": name, "title": title, "disclose": disclose, "consistent": consistent or None}
        content: dict[str, Any] = {
            "population": tables.population,
            "variables": naming.variables,
            "cubes": _with_own_ids(entries),
            **({"structural_zeros": [{"where": text} for text in zeros]} if zeros else {}),
            **swapping,
            "noise": noise.declared(),
            "release": {key: value for key, value in release.items() if value is not None},
            **({} if gates is None else {"gates": dict(gates)}),
            **further,
        }
        if tables.declared is not None and "standard" in tables.declared.content:
            content.setdefault("standard", {**tables.declared.content["standard"], "tables": []})
        path = Path(NAME) if tables.declared is None else tables.declared.path
        sources = naming.sources()
        kept = None if tables.declared is None else tables.declared.kept

        def again(other: Population) -> Programme:
            return other.programme(
                wanted,
                noise,
                swap=swap,
                structural_zeros=zeros,
                gates=gates,
                name=name,
                title=title,
                disclose=disclose,
                consistent=consistent,
                **further,
            )

        return Programme(Declaration(content, path, Supplied(sources, naming.codelists), kept), again)

    @names_arguments
    def with_records(self, tables: Mapping[str, AnyTable]) -> Population:
        """The same population with other records in some of its tables: those of a swap, or of another year."""
        return _population(self._tables.with_records(tables))

    def __repr__(self) -> str:
        geography = " > ".join(self._tables.population["geography"])
        return (
            f"Population({', '.join(self._tables.sources)}{f'; geography {geography}' if geography else ''})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a population is confidential and cannot be pickled; write it with Programme.to_toml")


def declared_population(declared: Declaration) -> Population:
    """The population that a programme file declares."""
    population = {"geography": [], **declared.content.get("population", {})}
    folder, file = declared.path.absolute().parent, str(declared.path)
    sources = {
        unit: resolve_source(source_entry(population[unit]), folder, file, f"population.{unit}")
        for unit in UNITS
        if unit in population
    }
    return _population(Tables(population=population, sources=sources, declared=declared))


def _population(tables: Tables) -> Population:
    found = Population.__new__(Population)
    found._tables, found.decisions = tables, ()  # noqa: SLF001, another way to make one
    return found


def _require_known(further: Iterable[str], keys: Iterable[str], own: Iterable[str], others: str) -> None:
    """Refuse an argument that is neither one of the function's own nor a key of a programme file."""
    keys = list(keys)
    for name in further:
        if name not in keys:
            near = get_close_matches(name, [*own, *keys], 1)
            remedy = f"did you mean {near[0]}=?" if near else f"{others} are {', '.join(keys)}"
            raise mistake("", "argument", f"unknown: {name}=", remedy)


def _with_own_ids(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cubes with ids that differ: two cubes of the same axes are numbered."""
    taken: dict[str, int] = {}
    for entry in entries:
        times = taken[entry["id"].lower()] = taken.get(entry["id"].lower(), 0) + 1
        if times > 1:
            entry["id"] = f"{entry['id'][:58]}_{times}"
    return entries
