"""A real server with the SDMX routes on the loopback interface, and real clients of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import Client

from discreet.formats.sdmx_ids import code_ids
from discreet.programme.codelist import Breakdown
from discreet.programme.programme import Programme
from discreet.release.reader import Release
from discreet.serve.http.app import ROUTERS, create_app
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_release
from discreet.serve.sdmx.routes import PREFIX, router
from tests.serve.conftest import NOON, published
from tests.serve.http.conftest import running, settings_in
from tests.waiting import PATIENCE

Cells = dict[tuple[str, ...], int]


def app_over(builder: TableBuilder, folder: Path) -> FastAPI:
    """The whole application with the routes of SDMX."""
    held = [one for one in ROUTERS if one.prefix != PREFIX]
    return create_app(builder, settings_in(folder), [*held, router(builder)])


@pytest.fixture(scope="session")
def endpoint(builder: TableBuilder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of SDMX REST over the records of the small census."""
    with running(app_over(builder, tmp_path_factory.mktemp("sdmx"))) as address:
        yield address + PREFIX


@pytest.fixture(scope="session")
def released(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of SDMX REST over the release."""
    folder = tmp_path_factory.mktemp("sdmx-release")
    over = serve_release(release, Store(folder / "s.sqlite", lambda: NOON))
    with running(app_over(over, folder)) as address:
        yield address + PREFIX


@pytest.fixture
def rest(endpoint: str) -> Iterator[Client]:
    """A plain client; it accepts anything."""
    with Client(base_url=endpoint, timeout=PATIENCE, verify=False) as made:
        yield made


@pytest.fixture
def rest_over(tmp_path: Path) -> Iterator[Callable[[TableBuilder], Client]]:
    """A plain client of a server over another builder."""
    with ExitStack() as opened:

        def made(builder: TableBuilder) -> Client:
            address = opened.enter_context(running(app_over(builder, tmp_path)))
            return opened.enter_context(Client(base_url=address + PREFIX, timeout=PATIENCE, verify=False))

        yield made


@pytest.fixture(scope="session")
def axes(programme: Programme) -> tuple[Breakdown, ...]:
    """The axes of the table."""
    return next(cube.axes for cube in programme.cubes if cube.id == "wide")


@pytest.fixture(scope="session")
def wide(release: Release, axes: tuple[Breakdown, ...]) -> Cells:
    """The published cells of the table under the ids of SDMX."""
    spelled = [dict(zip(axis.codes, code_ids(axis.codes), strict=True)) for axis in axes]
    return {
        tuple(names[code] for names, code in zip(spelled, codes, strict=True)): value
        for codes, value in published(release, "wide").items()
    }
