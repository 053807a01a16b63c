"""What all tests share: random bytes that repeat, databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scheduling
from tests.cases import few
from tests.engine.java import NO_SPARK
from tests.io.postgresql_server import NO_SERVER, Server, binaries, running
from tests.randomness import DEFAULT, repeat


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", default=DEFAULT, help="seed of the tests' random bytes, or random")


def pytest_configure(config: pytest.Config) -> None:
    repeat(config)
    config.pluginmanager.register(scheduling, "scheduling")


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed of random bytes: {config.getoption('--seed')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show loudly why Spark was not tested; the process that prints the summary loads no other conftest."""
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())]
    for reason in sorted({text for text in skipped if NO_SPARK in text}):
        terminalreporter.section("Spark", sep="!", red=True, bold=True)
        terminalreporter.line(reason.removeprefix("Skipped: "))


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


@pytest.fixture(params=few(["sqlite", "postgresql"], "sqlite"))
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with nothing in it; postgresql is long, unless a test is of `BOTH_DATABASES`."""
    if request.param == "sqlite":
        return str(tmp_path / "books.sqlite")
    server: Server = request.getfixturevalue("postgresql")
    return server.new_database()
