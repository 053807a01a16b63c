"""What all tests share: no deadlines, because kernels compile on first use and machines are noisy; databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.io.postgresql_server import NO_SERVER, Server, binaries, running

settings.register_profile("discreet", deadline=None)
settings.load_profile("discreet")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server, started for the first test that wants one."""
    with running(_programs()) as server:
        yield server


@pytest.fixture
def stoppable() -> Iterator[Server]:
    """A PostgreSQL server of the test's own, to stop and to start again."""
    with running(_programs()) as server:
        yield server


def _programs() -> Path:
    found = binaries()
    if found is None:
        pytest.skip(NO_SERVER)
    return found


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with nothing in it, of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "books.sqlite")
    server: Server = request.getfixturevalue("postgresql")
    return server.new_database()
