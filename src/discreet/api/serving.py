"""The table builder as an ASGI application, to run or to mount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from fastapi import FastAPI

from discreet.api.arguments import names_arguments, require
from discreet.api.audits import release_of
from discreet.api.columns import listed
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import Secrets, ledger_of
from discreet.api.releases import Release
from discreet.api.secret import secret_key
from discreet.api.tables import Table
from discreet.errors import mistake
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.register import Register
from discreet.io.temporary_folder import temporary_folder
from discreet.maths.cells.keys import derive
from discreet.perturb.ledger import Ledger
from discreet.programme.serve import DEFAULT_SERVE, HistoryRule
from discreet.release.manifest import is_release
from discreet.serve.http.app import create_app
from discreet.serve.http.security import stored_key
from discreet.serve.http.server import check_options
from discreet.serve.http.settings import Limits, RateLimit, Settings
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme, serve_release

USERS = "users"  # the name of the key of anonymous users


@names_arguments
def serve(
    what: Release | Table | Programme | str | Path,
    *,
    secret: Secrets | None = None,
    store: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    register: str | Path | None = None,
    another_ptable: bool = False,
    rules: Programme | str | Path | None = None,
    without_rules: bool = False,
    tokens: str | Path | None = None,
    tokens_only: bool = False,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = ("*",),
    rate: tuple[int, int] = (100, 10),
    waiting: int = 64,
    time_limit: float = 60.0,
    language: str = "en",
    geometry: str | Path | None = None,
    log_queries: bool = False,
    threads: int = 0,
    progress: bool = True,
) -> FastAPI:
    """A table builder over a release, or over the records of a programme, as an ASGI application.

    Of a table, its whole release is served. Run it with uvicorn, or mount it in another application
    (``other.mount("/tables", app)``), whose lifespan then has to enter ``app.router.lifespan_context(app)``. ``store``
    is the database of saved queries, jobs and histories, a temporary one by default. Over records the rules of the
    programme's ``serve`` section apply, and ``secret`` is required; over a release those of the programme that
    ``rules`` names. ``without_rules`` lets users collect without limit, which is not for the public.

    ``tokens_only`` requires a token of the file ``tokens``; ``hosts`` are the names under which the server may be
    addressed, ``origins`` other pages that may read answers; ``rate`` are requests and seconds of a public user,
    ``waiting`` the tables that may wait and ``time_limit`` the seconds that an answer may take. ``geometry`` is GeoJSON
    of the areas.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> release = ds.protect(census, [ds.Cube("sex")], ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> type(ds.serve(release)).__name__
    'FastAPI'
    """
    if isinstance(what, Population):
        remedy = "give census.programme(cubes, noise), or a release"
        raise mistake("", "serve", "a population without cubes and noise", remedy)
    limits = _limits(rate, waiting, time_limit, threads)
    check_options(
        tokens=None if tokens is None else Path(tokens),
        tokens_only=tokens_only,
        language=language,
        geometry=None if geometry is None else Path(geometry),
    )
    with temporary_folder(store is None) as temporary, shown_progress(not progress) as listener:
        place: str | Path = temporary.path / "serve.sqlite" if temporary is not None else str(store)
        if isinstance(place, str) and "://" not in place:
            place = Path(place)
        opened = Store(place, _now)
        if isinstance(what, Release | Table) or (isinstance(what, str | Path) and is_release(Path(what))):
            own_rules = Programme.read(rules) if isinstance(rules, str | Path) else rules
            rule = DEFAULT_SERVE if own_rules is None else own_rules.resolved.serve
            builder = serve_release(release_of(what).opened, opened, rule=rule)
            key = stored_key(opened.database, USERS)
        else:
            if isinstance(what, str | Path) and not Path(what).is_file():
                problem = "is neither a release nor a programme" if Path(what).exists() else "does not exist"
                raise mistake(what, "serve", problem, "give a release folder or a programme file")
            programme = what if isinstance(what, Programme) else Programme.read(what)
            if secret is None:
                raise mistake("", "secret", "is missing", "give the secret of the programme's releases")
            own = secret_key(secret)
            served = programme.resolved
            if without_rules:
                served = replace(served, serve=replace(served.serve, history=HistoryRule()))
            builder = serve_programme(
                served,
                own.key,
                opened,
                ledger=None if ledger is None else ledger_of(ledger, own),
                another_ptable=another_ptable,
                register=own.register() if register is None else Register.of(Path(register), own.key),
                threads=cores(threads),
                progress=listener,
            )
            key = derive(own.key, "serve-users")
        settings = Settings(
            opened,
            key,
            None if tokens is None else Path(tokens),
            tokens_only,
            limits,
            tuple(listed("origins", origins)),
            language,
            log_queries,
            None if geometry is None else Path(geometry),
            tuple(listed("hosts", hosts)),
        )
        app = create_app(builder, settings, charts=True)
        app.state.temporary = temporary  # deleted with the application
    return app


def _limits(rate: tuple[int, int], waiting: int, time_limit: float, threads: int) -> Limits:
    two = len(rate) == 2 and all(isinstance(one, int) and one > 0 for one in rate)
    require(two, "rate", repr(rate), "give requests and seconds: (100, 10)")
    require(waiting >= 0, "waiting", str(waiting), "give at least 0")
    require(time_limit >= 0.1, "time_limit", f"{time_limit:g}", "give at least 0.1 seconds")
    public = RateLimit(*rate)
    trusted = RateLimit(10 * public.calls, public.seconds)
    return Limits(public=public, trusted=trusted, waiting=waiting, seconds=time_limit, running=cores(threads))


def _now() -> datetime:
    return datetime.now(UTC)
