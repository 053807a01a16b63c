"""The audit of a release, attacks from its public files only, and the errors of its counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.api.arguments import in_arguments, names_arguments
from discreet.api.columns import AnyTable, Tables, listed
from discreet.api.drawings import shown
from discreet.api.laws import table_of
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import Secrets
from discreet.api.ptables import PTables
from discreet.api.releases import Origin, Release, open_release
from discreet.api.results import Result, figures
from discreet.api.secret import Secret, secret_key
from discreet.api.tables import Table, summary_frame
from discreet.audit.attack import Finding, NotPossible, Outsider, OutsiderFindings
from discreet.audit.attack import attack as run_attack
from discreet.audit.audit import (
    Audit,
    AveragingAudit,
    BayesAudit,
    BoundsAudit,
    DifferencingAudit,
    KeyGapAudit,
    LeastSquaresAudit,
    Protection,
    ReconstructionAudit,
    RedundancyAudit,
    Region,
    RemovalAudit,
    WeightsAudit,
)
from discreet.audit.case import Case, open_counts, recognise
from discreet.audit.differencing_areas import Crossing, read_crossing, require_areas
from discreet.audit.disclosure import Disclosures
from discreet.audit.evidence import published, refuse_adjusted, same_ptable, same_secret, supposing
from discreet.audit.hierarchy import HierarchyAudit
from discreet.audit.measures import Privacy
from discreet.audit.session import RATE, REQUESTS, SECONDS, Session, SessionFindings
from discreet.audit.session import attack_server as run_session
from discreet.audit.utility import Utility, side_by_side, utility_by
from discreet.engine.computing import computing
from discreet.errors import mistake
from discreet.io.atomic_folder import require_free
from discreet.io.progress import Progress
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.serialize import to_json
from discreet.io.temporary_folder import temporary_folder
from discreet.maths.noise.hellinger import PTableLaw
from discreet.page.charts import Drawing
from discreet.page.markup import Html
from discreet.page.skeleton import Part
from discreet.pipeline.audit import Before, audit_release, require_known, require_outside, write_audit
from discreet.report.confidential import gates_part, measured_parts
from discreet.report.findings import attack_lines, audit_lines, session_lines
from discreet.report.published import Names, attack_part, names_of
from discreet.report.utility import utility_part
from discreet.report.utility_lines import compared_lines, utility_lines

if TYPE_CHECKING:
    import pandas as pd

    from discreet.engine.spark import SparkEngine

Published = Table | Release | str | Path
PART_IDS = {
    "least_squares": "least-squares",
    "bayes": "posteriors",
}  # measure -> id of its part, where they differ


def release_of(what: Published) -> Release:
    """The release of a table, of a folder, or as it is."""
    if isinstance(what, Table):
        if not isinstance(what.release, Release):
            raise mistake(what.id, "", "a table without its release", "give the release, or its folder")
        return what.release
    if not isinstance(what, Release | str | Path):
        remedy = "give a table, a release, or the folder of a release"
        raise mistake("", "release", f"an object of type {type(what).__name__}", remedy)
    return what if isinstance(what, Release) else open_release(what)


def _made_from(
    release: Release, what: Population | Programme | str | Path | None, secret: Secrets | None
) -> Origin:
    """The programme and secret behind a release: given, or those that made it in this process."""
    origin = release.origin
    key: Secret | None = secret_key(secret) if secret is not None else origin.secret if origin else None
    programme: Programme | None
    if what is None or isinstance(what, Population):
        programme = origin.programme if origin else None
        if what is not None and programme is not None:
            programme = programme.of(what)  # its records have to be those that were counted
    else:
        programme = what if isinstance(what, Programme) else Programme.read(what)
    if programme is None or key is None:
        remedy = (
            "give the programme that made it and secret=: only the process that made a release knows them"
        )
        raise mistake(release.folder, "release", "was opened from a folder", remedy)
    return Origin(programme, key)


def _case(
    release: Release, origin: Origin, threads: int, progress: Progress, others: Iterable[Case] = ()
) -> Case:
    programme, key = origin.programme.resolved, origin.secret.key
    return open_counts(programme, key, release.opened, cores(threads), progress, others)


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport:
    """The findings of an audit; confidential, though no single true count is in it.

    Each measure is a ``Result``; to read one that was left out is a mistake.

    >>> import discreet as ds
    >>> persons = {"pid": range(600), "sex": ["F", "M", "F"] * 200, "lau": ["A", "B"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"])
    >>> table = ds.protect(census, ds.Cube("lau", "sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> report = ds.audit(table, census, without=["reconstruction", "region"])
    >>> report.passed, report.averaging.recovered <= report.averaging.attack.targets
    (True, True)
    """

    found: Audit
    names: Names

    @property
    def passed(self) -> bool:
        """Whether every declared gate holds."""
        return self.found.passed

    @property
    def redundancy(self) -> Result[RedundancyAudit]:
        """In how many ways each statistic can be computed."""
        return self._measure("redundancy", self.found.redundancy)

    @property
    def averaging(self) -> Result[AveragingAudit]:
        """The averaging attack."""
        return self._measure("averaging", self.found.averaging)

    @property
    def least_squares(self) -> Result[LeastSquaresAudit]:
        """The strongest linear attack."""
        return self._measure("least_squares", self.found.least_squares)

    @property
    def removal(self) -> Result[RemovalAudit | NotPossible]:
        """The removal of noise step by step."""
        return self._measure("removal", self.found.removal)

    @property
    def key_gaps(self) -> Result[KeyGapAudit | NotPossible]:
        """The attack on cell keys."""
        return self._measure("key_gaps", self.found.key_gaps)

    @property
    def bounds(self) -> Result[BoundsAudit]:
        """The attack by bounds and margins."""
        return self._measure("bounds", self.found.bounds)

    @property
    def weights(self) -> Result[WeightsAudit | NotPossible]:
        """The attack on weighted tables."""
        return self._measure("weights", self.found.weights)

    @property
    def privacy(self) -> Result[Privacy]:
        """What the noise guarantees."""
        return self._measure("privacy", self.found.privacy)

    @property
    def bayes(self) -> Result[BayesAudit]:
        """The Bayesian attacker."""
        return self._measure("bayes", self.found.bayes)

    @property
    def differencing(self) -> Result[DifferencingAudit]:
        """Differences of tables."""
        return self._measure("differencing", self.found.differencing)

    @property
    def reconstruction(self) -> Result[ReconstructionAudit | NotPossible]:
        """Records rebuilt from the tables."""
        return self._measure("reconstruction", self.found.reconstruction)

    @property
    def disclosure(self) -> Result[Disclosures]:
        """Small counts and shared attributes."""
        return self._measure("disclosure", self.found.disclosure)

    @property
    def utility(self) -> Result[Utility]:
        """The errors of the counts."""
        return self._measure("utility", self.found.utility)

    @property
    def region(self) -> Result[Region | NotPossible]:
        """The choices of V and D within all limits."""
        return self._measure("region", self.found.region)

    @property
    def protection(self) -> Result[Protection]:
        """What was declared about the noise, and what swapping did."""
        return self._measure("protection", self.found.protection)

    @property
    def hierarchy(self) -> Result[HierarchyAudit]:
        """The accuracy of each level of a hierarchical release, and the attack on its measurements."""
        return self._measure("hierarchy", self.found.hierarchy)

    def summary(self) -> str:
        """The gates first, then one or two lines for each measure."""
        return "\n".join(map(in_arguments, audit_lines(self.found)))

    def to_pandas(self) -> pd.DataFrame:
        """The conclusion of each measure."""
        rows = [{"gate": str(one), "passed": one.passed} for one in self.found.verdicts]
        parts = [{"measure": part.id, "question": part.title, "answer": part.lead} for part in self._parts]
        return summary_frame([*rows, *parts])

    def chart(self, name: str | None = None) -> Drawing:
        """A chart of the audit as an Altair object: the first, or that of a name."""
        return Result(self.found, (), self._parts).chart(name)

    def _measure(self, name: str, found: Any) -> Result[Any]:
        if found is None:
            remedy = f"left out are {', '.join(self.found.left_out)}"
            raise mistake("audit", name, "was left out, or does not apply to this release", remedy)
        parts = tuple(part for part in self._parts if part.id == PART_IDS.get(name, name))
        lines = tuple(part.lead for part in parts) or (f"{name}: {type(found).__name__}",)
        return Result(found, lines, parts)

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        return tuple(measured_parts(self.found, self.names))

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> Html:
        return shown(part.html() for part in (gates_part(self.found.verdicts), *self._parts))


@names_arguments
def audit(
    release: Published,
    census: Population | Programme | str | Path | None = None,
    *,
    secret: Secrets | None = None,
    without: Collection[str] = (),
    earlier: Release | str | Path | None = None,
    earlier_programme: Programme | str | Path | None = None,
    earlier_secret: Secrets | None = None,
    lookup: AnyTable = None,
    geographies: Sequence[str] = (),
    out: str | Path | None = None,
    threads: int = 0,
    progress: bool = True,
    engine: SparkEngine | None = None,
) -> AuditReport:
    """Recount the confidential records, attack a release with full knowledge, and check its gates.

    Of a release that this process made, programme and secret are known; for one that was opened from a folder, give the
    programme and ``secret``. ``earlier`` is a release of the same tables that is subtracted; one from a folder is
    compared with its true counts where ``earlier_programme`` made it, under ``earlier_secret`` if that is another one.
    ``lookup`` is a table of the overlapping areas of the two variables that ``geographies`` names. ``out`` also writes
    the confidential report into a new folder. With an ``engine`` Spark counts the records.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> ds.audit(table, census, without=["reconstruction", "region"]).passed
    True
    """
    opened = release_of(release)
    refuse_adjusted(opened.opened, fitted=True)
    require_known(without)
    if out is not None:
        require_outside(Path(out), opened.folder)
        require_free(Path(out), "out")
    crossing = _crossing(lookup, geographies)
    if crossing is not None:
        require_areas(published(opened.opened), crossing)
    origin = _made_from(opened, census, secret)
    before = _before(earlier, earlier_programme, earlier_secret, origin.secret)
    with (
        temporary_folder(out is None) as temporary,
        computing(origin.programme.resolved, given=engine) as where,
        shown_progress(not progress) as listener,
    ):
        work = temporary.path if temporary is not None else Path(str(out)).resolve().parent
        key, many = origin.secret.key, cores(threads)
        run = recognise(where.programme, key, opened.opened, many, listener, where.engine)
        found = audit_release(run, opened.opened, without, before, crossing, work)
        if out is not None:
            write_audit(found, Path(out), opened.folder, many, listener)
    return AuditReport(found, names_of(opened.opened))


def _before(
    earlier: Release | str | Path | None,
    programme: Programme | str | Path | None,
    secret: Secrets | None,
    present: Secret,
) -> Before | None:
    """The earlier release, with the programme and secret behind it where they are known."""
    if earlier is None:
        if programme is not None or secret is not None:
            name = "earlier_secret" if programme is None else "earlier_programme"
            raise mistake("", name, "without earlier", "give the earlier release, too: earlier=")
        return None
    first = release_of(earlier)
    if first.origin is not None and programme is None:
        return Before(first.folder, first.origin.programme.resolved, first.origin.secret.key)
    if programme is None and secret is not None:
        remedy = "give the programme of the earlier release: earlier_programme="
        raise mistake("", "earlier_secret", "without earlier_programme", remedy)
    declared = Programme.read(programme) if isinstance(programme, str | Path) else programme
    key = present if secret is None else secret_key(secret)
    return Before(first.folder, None if declared is None else declared.resolved, key.key)


@dataclass(frozen=True, eq=False, repr=False)
class AttackReport:
    """What anyone with the public files can find out; attributes are the findings of each attack.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> report = ds.attack(table, without=["reconstruction"])
    >>> report["averaging"].targets > 0
    True
    """

    found: OutsiderFindings
    lines: tuple[str, ...]

    def __getitem__(self, name: str) -> Finding | NotPossible:
        findings = dict(self.found.items())
        if name not in findings:
            raise mistake("", "attack", repr(name), f"choose from {', '.join(findings)}")
        return findings[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("found", "lines"):
            raise AttributeError(name)
        return getattr(self.found, name)

    def summary(self) -> str:
        """A line or two for each attack."""
        return "\n".join(self.lines)

    def to_pandas(self) -> pd.DataFrame:
        """Every figure of each attack by name, or why it could not be run."""
        rows = [
            {"attack": name, "figure": figure, "value": value}
            for name, one in self.found.items()
            for figure, value in figures(to_json(one))
        ]
        return summary_frame(rows, ["attack", "figure", "value"])

    @property
    def result(self) -> Result[OutsiderFindings]:
        """The same as a result with charts."""
        return Result(self.found, self.lines, (attack_part(self.found),))

    def chart(self) -> Any:
        """How many counts averaging is expected to recover, as an Altair object."""
        return self.result.chart()

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> Html:
        return shown([attack_part(self.found).html()])


@names_arguments
def attack(
    release: Published,
    *,
    ptable: PTables | None = None,
    variance: float | None = None,
    bound: int | None = None,
    earlier: Release | str | Path | None = None,
    lookup: AnyTable = None,
    geographies: Sequence[str] = (),
    place: str | None = None,
    areas: int = 10,
    seconds: float = 5.0,
    without: Collection[str] = (),
    threads: int = 0,
    progress: bool = True,
) -> AttackReport:
    """Attack a release from its public files only; ``ptable``, ``variance`` and ``bound`` are what else is known.

    ``lookup`` is a public table of the overlapping areas of two variables, which ``geographies`` names: maps are
    subtracted. A running table builder is attacked by ``attack_server``.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> "averaging" in ds.attack(table, ptable=ds.ptable(V=2, D=5), without=["reconstruction"]).summary().lower()
    True
    """
    opened = release_of(release)
    before = None if earlier is None else release_of(earlier)
    refuse_adjusted(opened.opened, fitted=True)
    if before is not None:
        refuse_adjusted(before.opened)
    crossing = _crossing(lookup, geographies)
    seen = supposing(
        published(opened.opened), None if ptable is None else PTableLaw(table_of(ptable)), variance
    )
    with shown_progress(not progress) as listener:
        outsider = Outsider(
            seen,
            None if before is None else published(before.opened),
            before is not None and same_secret(before.opened, opened.opened),
            crossing,
            bound,
            place,
            areas,
            seconds,
            cores(threads),
            listener,
            same_ptable=before is None or same_ptable(before.opened, opened.opened),
        )
        found = run_attack(outsider, without)
    return AttackReport(found, tuple(attack_lines(seen, found)))


@names_arguments
def attack_server(
    address: str,
    *,
    axes: Sequence[str] = (),
    filtered: str = "",
    variance: float | None = None,
    requests: int = REQUESTS,
    seconds: float = SECONDS,
    rate: float = RATE,
    own_server: bool = False,
) -> Result[SessionFindings]:
    """Attack one's own table builder at ``http://..``: the same table under random opposite filters, averaged.

    ``axes`` and ``filtered`` are the breakdowns of the table and the variable of the filters, chosen where not given.
    ``own_server`` confirms that a server on another machine is your own.

    >>> import discreet as ds
    >>> try:
    ...     ds.attack_server("http://census.example")
    ... except ds.DiscreetError as refused:
    ...     print(str(refused).split(";")[0])
    attack: http://census.example is not on this machine
    """
    session = Session(
        address=address.rstrip("/"),
        axes=tuple(listed("axes", axes)),
        filtered=filtered,
        requests=requests,
        seconds=seconds,
        rate=rate,
        variance=variance,
        own_server=own_server,
    )
    found = run_session(session)
    return Result(found, tuple(session_lines(session.address, found)))


def _crossing(lookup: AnyTable, geographies: Sequence[str]) -> Crossing | None:
    names = listed("geographies", geographies)
    if lookup is None and not names:
        return None
    if lookup is None or len(names) != 2:
        remedy = 'give both, e.g. geographies=["grid", "lau"]'
        raise mistake("", "lookup, geographies", ", ".join(names) or "missing", remedy)
    tables = Tables()
    tables.take("lookup", lookup)
    return read_crossing(tables.records("lookup"), names[0], names[1])


@names_arguments
def utility(
    release: Published,
    census: Population | Programme | str | Path | None = None,
    *,
    secret: Secrets | None = None,
    by: str = "",
    threads: int = 0,
    progress: bool = True,
) -> Result[Utility]:
    """Compare every published count with the true one: errors realised and expected, small areas, totals, tests.

    The result is confidential: review it before publishing any part.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> ds.utility(table, census).changed_tests
    0
    """
    opened = release_of(release)
    origin = _made_from(opened, census, secret)
    with shown_progress(not progress) as listener:
        case = _case(opened, origin, threads, listener)
        found = utility_by(case.published, case.truth, by, listener)
    return Result(found, tuple(utility_lines(found)), (utility_part(found),))


@dataclass(frozen=True)
class ComparedUtility:
    """The errors of several releases of the same records, by name, and their figures side by side.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> two, nine = (ds.protect(census, ds.Cube("sex"), ds.CellKey(V=V, D=9), secret=ds.Secret.new()) for V in (2, 9))
    >>> list(ds.compare_utility({"V = 2": two, "V = 9": nine}).utilities)
    ['V = 2', 'V = 9']
    """

    utilities: Mapping[str, Utility]
    side_by_side: Mapping[str, Mapping[str, float | None]]  # figure -> release -> value


@names_arguments
def compare_utility(
    releases: Mapping[str, Published],
    census: Population | Programme | str | Path | None = None,
    *,
    secret: Secrets | None = None,
    by: str = "",
    threads: int = 0,
    progress: bool = True,
) -> Result[ComparedUtility]:
    """The errors of several releases of the same records side by side, each under a name. Confidential.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> two, nine = (ds.protect(census, ds.Cube("sex"), ds.CellKey(V=V, D=9), secret=ds.Secret.new()) for V in (2, 9))
    >>> found = ds.compare_utility({"V = 2": two, "V = 9": nine}, census)
    >>> sorted(found.to_pandas().columns)
    ['V = 2', 'V = 9', 'figure']
    """
    if not isinstance(releases, Mapping) or len(releases) < 2:
        raise mistake("", "releases", "fewer than two", 'name them: {"V = 2": first, "V = 5": second}')
    found: dict[str, Utility] = {}
    cases: list[Case] = []
    with shown_progress(not progress) as listener:
        for name, one in releases.items():
            opened = release_of(one)
            case = _case(opened, _made_from(opened, census, secret), threads, listener, cases)
            cases.append(case)
            found[name] = utility_by(case.published, case.truth, by, listener)
    figures_of = side_by_side(found)
    rows = tuple({"figure": figure, **values} for figure, values in figures_of.items())
    return Result(ComparedUtility(found, figures_of), tuple(compared_lines(figures_of)), rows=rows)
