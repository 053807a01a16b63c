"""The table builder as an ASGI application, to run or to mount."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fastapi import FastAPI

from discreet.api.arguments import names_arguments
from discreet.api.audits import release_of
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import Secrets
from discreet.api.releases import Release
from discreet.api.secret import secret_key
from discreet.api.tables import Table
from discreet.errors import mistake
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.register import Register
from discreet.io.temporary_folder import temporary_folder
from discreet.maths.cells.keys import derive
from discreet.perturb.ledger import Ledger
from discreet.release.manifest import is_release
from discreet.serve.http.app import create_app
from discreet.serve.http.limits import Settings
from discreet.serve.http.security import stored_key
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme, serve_release

USERS = "users"  # the name of the key of anonymous users


@names_arguments
def serve(
    what: Release | Table | Programme | str | Path,
    *,
    secret: Secrets | None = None,
    store: str | Path | None = None,
    ledger: Ledger | None = None,
    register: str | Path | None = None,
    tokens: str | Path | None = None,
    language: str = "en",
    threads: int = 0,
    progress: bool = True,
) -> FastAPI:
    """A table builder over a release, or over the records of a programme, as an ASGI application.

    Of a table, its whole release is served. Run it with uvicorn, or mount it in another application, whose lifespan
    then has to enter ``app.router.lifespan_context(app)``. ``store`` is the database of saved queries, jobs and
    histories, a temporary one by default. Over records the rules of the programme's ``serve`` section apply, and
    ``secret`` is required.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": range(90), "sex": ["F", "M", "F"] * 30}, person_id="pid")
    >>> release = ds.protect(census, [ds.Cube("sex")], ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> type(ds.serve(release)).__name__
    'FastAPI'
    """
    if isinstance(what, Population):
        remedy = "give census.programme(cubes, noise), or a release"
        raise mistake("", "serve", "a population without cubes and noise", remedy)
    with temporary_folder(store is None) as temporary, shown_progress(not progress) as listener:
        place: str | Path = temporary.path / "serve.sqlite" if temporary is not None else str(store)
        if isinstance(place, str) and "://" not in place:
            place = Path(place)
        opened = Store(place, _now)
        if isinstance(what, Release | Table) or (isinstance(what, str | Path) and is_release(Path(what))):
            builder = serve_release(release_of(what).opened, opened)
            key = stored_key(opened.database, USERS)
        else:
            programme = what if isinstance(what, Programme) else Programme.read(what)
            if secret is None:
                raise mistake("", "secret", "is missing", "give the secret of the programme's releases")
            own = secret_key(secret)
            builder = serve_programme(
                programme.resolved,
                own.key,
                opened,
                ledger=ledger,
                register=own.register() if register is None else Register.of(Path(register), own.key),
                threads=cores(threads),
                progress=listener,
            )
            key = derive(own.key, "serve-users")
        settings = Settings(opened, key, None if tokens is None else Path(tokens), language=language)
        app = create_app(builder, settings)
        app.state.temporary = temporary  # deleted with the application
    return app


def _now() -> datetime:
    return datetime.now(UTC)
