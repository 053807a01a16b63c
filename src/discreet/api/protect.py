"""From a population and cubes to a protected table or release, by the same code as ``discreet protect``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from discreet.api.arguments import names_arguments
from discreet.api.cubes import Cube
from discreet.api.noise import Noise, Swap
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.releases import Origin, Release
from discreet.api.results import Result
from discreet.api.secret import Secret, secret_key
from discreet.api.tables import Table
from discreet.audit.verdict import GateVerdict
from discreet.engine.computing import computing
from discreet.errors import mistake
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.register import Register
from discreet.io.signing_key import read_private_key
from discreet.io.temporary_folder import temporary_folder
from discreet.lazy import lazily
from discreet.maths.cells.keys import derive
from discreet.pipeline.earlier import EarlierReleases
from discreet.pipeline.protect import protect as publish
from discreet.pipeline.protect import rehearse as judge_gates
from discreet.pipeline.spending import Spending
from discreet.programme.noise import CellKeyNoise
from discreet.release.reader import open_release as open_folder

if TYPE_CHECKING:
    from discreet.engine.spark import SparkEngine
    from discreet.perturb import ledger as ledgers
    from discreet.perturb.ledger import Ledger
else:
    ledgers = lazily("discreet.perturb.ledger")  # its database is slow to import

Secrets = Secret | bytes | str | Path


def programme_of(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    **declared: object,
) -> Programme:
    """A programme: as given, of a file, or of a population with cubes and noise."""
    if not isinstance(what, Population):
        if not isinstance(what, Programme | str | Path):
            remedy = "give a Population(persons=..), a Programme or the path of a programme file"
            raise mistake("", "population", f"an object of type {type(what).__name__}", remedy)
        if cubes is not None or noise is not None or declared:
            remedy = "it declares cubes and noise itself; give a Population to declare others"
            raise mistake("", "programme", "together with cubes, noise or other declarations", remedy)
        return what if isinstance(what, Programme) else Programme.read(what)
    if cubes is None or noise is None:
        raise mistake(
            "", "protect", "a population without cubes or noise", "give both: Cube(..), CellKey(V=2, D=5)"
        )
    return what.programme(cubes, noise, **declared)  # type: ignore[arg-type]


class Options(TypedDict, total=False):
    """The other arguments of ``protect``, for type checkers."""

    out: str | Path | None
    private_manifest: str | Path | None
    register: str | Path | None
    ledger: Ledger | str | Path | None
    account: str
    earlier: Iterable[Release | str | Path]
    accept_corrections: bool
    another_ptable: bool
    sign: str | Path | None
    swap: Swap | None
    structural_zeros: Iterable[str]
    gates: Mapping[str, object] | None
    name: str
    title: str | None
    disclose: str | None
    consistent: bool
    limits: Mapping[str, object]
    serve: Mapping[str, object]
    threads: int
    progress: bool
    engine: SparkEngine | None


@overload
def protect(
    what: Population, cubes: Cube, noise: Noise, *, secret: Secrets, **options: Unpack[Options]
) -> Table: ...


@overload
def protect(
    what: Population | Programme | str | Path,
    cubes: Iterable[Cube] | None = ...,
    noise: Noise | None = ...,
    *,
    secret: Secrets,
    **options: Unpack[Options],
) -> Release: ...


@names_arguments
def protect(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    secret: Secrets,
    out: str | Path | None = None,
    private_manifest: str | Path | None = None,
    register: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    account: str = "",
    earlier: Iterable[Release | str | Path] = (),
    accept_corrections: bool = False,
    another_ptable: bool = False,
    sign: str | Path | None = None,
    threads: int = 0,
    progress: bool = True,
    engine: SparkEngine | None = None,
    **declared: object,
) -> Table | Release:
    """Count and perturb cubes of a population, or everything that a programme declares.

    One cube gives a ``Table``, several or a programme a ``Release``. The counts are those of ``discreet protect`` for
    the same records, noise and secret. ``declared`` are the declarations of ``Population.programme``: ``swap``,
    ``structural_zeros``, ``gates``, ``name``, ``title``, ``disclose``, ``consistent``.

    ``out`` also writes a release folder; its private manifest is then next to the secret's file, or where
    ``private_manifest`` names. A table by the cell key method is recorded in the register of the secret, next to its
    file or where ``register`` names, whether a folder is written or not: another p-table under the same secret is then
    refused unless ``another_ptable``. A secret without a file has no register; try parameters with ``Secret.new()``.
    ``ledger`` and ``account`` charge a budget before noise is drawn. If a gate is broken, nothing is made (``rehearse``
    only judges them). ``sign`` is a private key to sign the release with. With an ``engine``, ``SparkEngine(spark)``,
    or where a programme declares one, Spark counts; the bytes are the same.

    >>> import discreet as ds
    >>> persons = {"pid": range(300), "sex": ["F", "M", "F"] * 100, "age": [5, 20, 70, 33, 90] * 60}
    >>> census = ds.Population(persons=persons, person_id="pid")
    >>> cube = ds.Cube("sex", ds.bands("age", 0, 15, 65))
    >>> table = ds.protect(census, cube, ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> table.axis("age").codes
    ('_T', '0-14', '15-64', '65+')

    On a cluster, with the session of a notebook:

    >>> ds.protect("census.toml", secret="secret", out="release", engine=ds.SparkEngine(spark))  # doctest: +SKIP
    """
    programme = programme_of(what, cubes, noise, **declared)
    key = secret_key(secret)
    resolved = programme.resolved
    beside = earlier_releases(earlier, accept_corrections)
    known = Register.of(Path(register), key.key) if register is not None else key.register()
    private = None if out is None else private_place(private_manifest, key, Path(out))
    if out is not None and known is None and isinstance(resolved.noise, CellKeyNoise):
        remedy = "save the secret (Secret.save), or name the register: it records what is published under it"
        raise mistake("", "register", "a folder is written under a secret without a file", remedy)
    signing = None if sign is None else read_private_key(Path(sign))
    with (
        temporary_folder(out is None) as temporary,
        computing(resolved, given=engine) as where,
        shown_progress(not progress) as listener,
    ):
        place = temporary.path / resolved.release.name if temporary is not None else Path(str(out))
        made = publish(
            where.programme,
            key.key,
            place,
            private,
            clock=_now,
            threads=cores(threads),
            progress=listener,
            spending=spending_of(ledger, account, key),
            register=known,
            earlier=beside,
            another_ptable=another_ptable,
            signing=signing,
            engine=where.engine,
        )
        release = Release(open_folder(place), Origin(programme, key, made.notes, made.verdicts, temporary))
    return release[next(iter(release))] if isinstance(cubes, Cube) else release


@names_arguments
def rehearse(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    secret: Secrets,
    out: str | Path | None = None,
    earlier: Iterable[Release | str | Path] = (),
    accept_corrections: bool = False,
    threads: int = 0,
    progress: bool = True,
    engine: SparkEngine | None = None,
    **declared: object,
) -> Result[tuple[GateVerdict, ...]]:
    """Run all steps of ``protect`` up to its gates and judge them; nothing is published, charged or stored.

    ``out`` is the release that would be replaced and is compared with the new one.

    >>> import discreet as ds
    >>> persons = {"pid": range(300), "sex": ["F", "M", "F"] * 100}
    >>> census = ds.Population(persons=persons, person_id="pid")
    >>> found = ds.rehearse(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=bytes(32), gates={"averaging": 0.9})
    >>> [(verdict.gate, verdict.passed) for verdict in found.found]
    [('averaging', True)]
    """
    programme = programme_of(what, cubes, noise, **declared)
    resolved, key = programme.resolved, secret_key(secret)
    if not resolved.gates.declared:
        raise mistake("", "gates", "none are declared", 'declare some: gates={"averaging": 0.68}')
    with (
        temporary_folder(out is None) as temporary,
        computing(resolved, given=engine) as where,
        shown_progress(not progress) as listener,
    ):
        place = temporary.path / resolved.release.name if temporary is not None else Path(str(out))
        beside = earlier_releases(earlier, accept_corrections)
        found = judge_gates(where.programme, key.key, place, cores(threads), listener, beside, where.engine)
    lines = tuple(f"{'Passed' if one.passed else 'Broken'} {one}" for one in found)
    rows = tuple({"gate": str(one), "passed": one.passed} for one in found)
    return Result(tuple(found), lines, rows=rows)


@names_arguments
def open_ledger(where: str | Path, secret: Secrets) -> Ledger:
    """Open or create a ledger of privacy budgets, sealed by a secret: a SQLite file, or ``postgresql://``.

    >>> import discreet as ds
    >>> secret = ds.Secret.new()
    >>> ledger = ds.open_ledger(getfixture("tmp_path") / "budget.sqlite", secret)
    >>> _ = ledger.create_account("census", ds.Rho(2), ds.Neighbours.ADD_REMOVE, "person")
    >>> print(ledger.remaining("census"))
    rho=2/1
    """
    return ledgers.Ledger.create(_place(where), _now, derive(secret_key(secret).key, "ledger"))


def spending_of(ledger: Ledger | str | Path | None, account: str, secret: Secret) -> Spending | None:
    """The account that a release is charged to."""
    if (ledger is None) == bool(account):
        raise mistake("", "ledger", "a ledger without an account, or the reverse", "give both or neither")
    return None if ledger is None else Spending(ledger_of(ledger, secret), account)


def ledger_of(ledger: Ledger | str | Path, secret: Secret) -> Ledger:
    """A ledger, or the one of a place."""
    if isinstance(ledger, ledgers.Ledger):
        return ledger
    return ledgers.Ledger.open(_place(ledger), _now, derive(secret.key, "ledger"))


def _place(where: str | Path) -> str | Path:
    return where if isinstance(where, str) and "://" in where else Path(where)


def earlier_releases(earlier: Iterable[Release | str | Path], accept_corrections: bool) -> EarlierReleases:
    """The releases that a new one is compared with."""
    if isinstance(earlier, Release | str | Path):
        raise mistake("", "earlier", "a single release", "give a list: earlier=[release]")
    folders = (one.folder if isinstance(one, Release) else Path(one) for one in earlier)
    return EarlierReleases(tuple(folders), accept_corrections)


def private_place(given: str | Path | None, secret: Secret, out: Path) -> Path:
    """Where the private manifest is stored: as given, or next to the secret."""
    found = Path(given) if given is not None else secret.beside(f"{out.resolve().name}.json")
    if found is None:
        remedy = (
            "save the secret (Secret.save), or give private_manifest=: it has full parameters and row counts"
        )
        raise mistake("", "private_manifest", "a folder is written under a secret without a file", remedy)
    return found


def _now() -> datetime:
    return datetime.now(UTC)
