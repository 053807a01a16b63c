"""Opening a table builder over records or over a release."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from discreet.errors import Mistakes, Problem, mistake
from discreet.io.progress import Progress, Quiet
from discreet.io.register import Register
from discreet.maths.cells.keys import derive
from discreet.maths.privacy.accounting import EpsilonDelta
from discreet.perturb.choose import mechanism
from discreet.perturb.ledger import Ledger
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import LARGE, Noise
from discreet.perturb.private import PrivateMechanism
from discreet.perturb.reach import neighbour_problems
from discreet.perturb.weak import weak_problems
from discreet.population.place_columns import place_column_problems
from discreet.programme.noise import CellKeyNoise, Claim
from discreet.programme.programme import Programme
from discreet.programme.serve import DEFAULT_SERVE, HistoryRule, ServeRule
from discreet.release.reader import Release
from discreet.run.identity import bound_key, digest_inputs, run_digests
from discreet.run.issued import issuing
from discreet.run.run import Run, require_none
from discreet.serve.budget import Accounts, PrivateTables, account_guarantee
from discreet.serve.builder import TableBuilder
from discreet.serve.catalogue import Catalogue, programme_catalogue
from discreet.serve.history import History
from discreet.serve.jobs_store import Store
from discreet.serve.noise_ranges import NoiseRanges
from discreet.serve.records import MicrodataSource, read_units
from discreet.serve.released import ReleaseSource

__all__ = ["TableBuilder", "serve_programme", "serve_release"]


def serve_programme(
    programme: Programme,
    secret: bytes,
    store: Store,
    *,
    ledger: Ledger | None = None,
    register: Register | None = None,
    another_ptable: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> TableBuilder:
    """A table builder over the records of a programme: read once, swapped as in its release, and stored in memory.

    The rules are ``programme.serve``. Noise with a guarantee needs a ledger: each user has an account in it. Its
    snapshot is bound in the ``register`` of the secret, in which a builder by the cell key method is recorded: another
    p-table than those recorded is refused, unless ``another_ptable`` accepts the risk.
    """
    _refuse_adjusted(programme)
    _refuse_fresh(programme)
    require_none(place_column_problems(programme))
    key = bound_key(programme, secret, register)
    is_recorded = register is not None and isinstance(programme.noise, CellKeyNoise)
    with ThreadPoolExecutor(1) as beside:  # files are digested while noise and catalogue are made
        digests = beside.submit(digest_inputs, programme, secret) if is_recorded else None
        offer = _offer(programme, secret, key, ledger)
    if digests is not None:
        _record(programme, secret, offer.chosen, digests.result(), register, forced=another_ptable)
    chosen, private, catalogue, noise = offer.chosen, offer.private, offer.catalogue, offer.noise
    run = Run(
        programme=programme, secret=secret, mechanism=chosen, threads=threads, progress=progress or Quiet()
    )
    units = read_units(run, catalogue)
    if offer.accounts is not None and private is not None:
        _refuse_large_delta(programme, private, max(len(unit) for unit in units.values()))
    if private is None:
        source = MicrodataSource(catalogue, units, lambda cube: chosen, NoiseRanges(noise), threads)
    else:
        ranges = NoiseRanges(noise, private.law)
        source = MicrodataSource(catalogue, units, private.mechanism, ranges, threads)
    rule = programme.serve.history
    variance = _variance(chosen, private, catalogue) if rule.is_guarded else 0.0
    history = History(store.database, rule, variance)
    return TableBuilder(source, history, offer.accounts)


def serve_release(release: Release, store: Store, *, rule: ServeRule = DEFAULT_SERVE) -> TableBuilder:
    """A table builder over a release folder: no records, no secret, only what it contains."""
    source = ReleaseSource(release, rule)
    if not source.catalogue.units:
        remedy = "serve a release that has some; weighted tables cannot be served"
        raise mistake(release.folder, "cubes", "the release has no tables of counts", remedy)
    return TableBuilder(source, History(store.database, HistoryRule()))  # it is public as a whole


def _variance(chosen: Mechanism, private: PrivateTables | None, catalogue: Catalogue) -> float:
    """The variance of the noise of a large count, the least of all cross-tabulations."""
    if private is None:
        return chosen.noise().law_of(catalogue.statistics()[0]).row(LARGE).variance
    return min(private.law(one).row(LARGE).variance for one in catalogue.statistics())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Offer:
    """What a table builder offers, without its records."""

    chosen: Mechanism
    noise: Noise
    catalogue: Catalogue
    private: PrivateTables | None = None
    accounts: Accounts | None = None


def _offer(programme: Programme, secret: bytes, key: bytes, ledger: Ledger | None) -> _Offer:
    chosen = mechanism(programme, secret, key)
    require_none(weak_problems(programme, chosen))
    noise = chosen.noise().public(programme.release.disclose)
    if not isinstance(chosen, PrivateMechanism):
        return _Offer(chosen=chosen, noise=noise, catalogue=programme_catalogue(programme, noise))
    _refuse_dense(programme, chosen)
    private = PrivateTables(programme, chosen)
    accounts = _accounts(programme, private, ledger, derive(key, "serve-questions"))
    catalogue = programme_catalogue(programme, noise)
    require_none(neighbour_problems(catalogue.statistics(), private.rule, str(programme.path)))
    noise = replace(noise, guarantee=account_guarantee(private, catalogue.statistics()))
    catalogue = replace(catalogue, noise=noise)
    return _Offer(chosen=chosen, noise=noise, catalogue=catalogue, private=private, accounts=accounts)


def _record(
    programme: Programme,
    secret: bytes,
    chosen: Mechanism,
    digests: Mapping[str, str],
    register: Register | None,
    *,
    forced: bool,
) -> None:
    """Record the noise under the secret before it answers; noise without cell keys is not recorded."""
    found = run_digests(programme, secret, chosen, digests)
    now = datetime.now(UTC)
    issued = issuing(programme, chosen, found, register, run_id="", time=now, forced=forced, served=True)
    if issued is not None:
        issued.record()


def _accounts(
    programme: Programme, private: PrivateTables, ledger: Ledger | None, key: bytes
) -> Accounts | None:
    if private.rule.claim is not Claim.DP:
        return None
    if ledger is None:
        raise mistake(
            programme.path,
            "ledger",
            "is missing",
            "noise with a guarantee is accounted for: name a ledger with --ledger (discreet ledger create)",
        )
    return Accounts(ledger, private, key)


def _refuse_fresh(programme: Programme) -> None:
    noise = programme.noise
    if noise.is_fresh:
        remedy = "name the records with noise.snapshot: a repeated question must have the same answer"
        raise mistake(programme.path, "noise.snapshot", "is missing, so that noise is drawn afresh", remedy)


def _refuse_adjusted(programme: Programme) -> None:
    """Answers are not fitted to the tables of a release, and would give its cells a second value."""
    if programme.release.consistent:
        remedy = "serve the release folder instead, or leave out consistent"
        raise mistake(programme.path, "release.consistent", "tables that add up, for a table builder", remedy)
    if programme.hierarchy is not None:
        remedy = "serve the release folder instead: single answers would not add up to it"
        raise mistake(programme.path, "noise.kind", "hierarchical noise, for a table builder", remedy)


def _refuse_dense(programme: Programme, chosen: PrivateMechanism) -> None:
    """A table that is too dense once it is perturbed would be charged for and then refused."""
    if programme.serve.counted > chosen.most_cells:
        value = f"{programme.serve.counted} is above limits.published, {chosen.most_cells}"
        raise mistake(
            programme.path, "serve.counted", value, "noise can fill every cell: lower one or raise the other"
        )


def _refuse_large_delta(programme: Programme, private: PrivateTables, records: int) -> None:
    """Refuse a delta of at least 1 / records: it would allow publishing a record outright."""
    budget = private.budget
    delta = budget.delta if isinstance(budget, EpsilonDelta) else private.rule.delta
    if not private.rule.large_delta and delta * records >= 1:
        value = f"delta = {float(delta):.3g} is not below one in the number of records"
        problem = Problem(
            str(programme.path), "noise.delta", value, "lower it, or accept it with large_delta = true"
        )
        raise Mistakes([problem])
