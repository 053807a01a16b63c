"""The container file: a user without rights, a health check that the server has, and files that exist."""

import re
from pathlib import Path

import pytest

from tests.fuzz.commands import commands

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()


def of(instruction: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in LINES if line.startswith(f"{instruction} ")]


def test_it_runs_as_a_user_without_rights() -> None:
    (user,) = of("USER")
    assert all(int(number) > 0 for number in user.split(":"))
    assert of("ENTRYPOINT") == ['["discreet"]']


def test_what_it_copies_exists() -> None:
    copied = [words.split()[:-1] for words in of("COPY") if not words.startswith("--from")]
    assert copied
    assert all((ROOT / name).exists() for names in copied for name in names)


def test_its_health_check_asks_the_server() -> None:
    (check,) = of("HEALTHCHECK")
    assert re.search(r"http://127\.0\.0\.1:8000/health", check)
    assert of("EXPOSE") == ["8000"]


def test_it_installs_what_is_pinned() -> None:
    assert any("--require-hashes -r requirements.lock" in words for words in of("RUN"))


def test_kernels_are_compiled_where_a_container_reads_them() -> None:
    """Beside their source, as long as NUMBA_CACHE_DIR does not say otherwise; what is compiled later goes to /tmp."""
    filled = next(at for at, line in enumerate(LINES) if "discreet demo --quiet" in line)
    assert filled < next(
        at for at, line in enumerate(LINES) if line.startswith("COPY --from=build /opt/discreet")
    )
    assert not any("NUMBA_CACHE_DIR" in line for line in LINES)
    assert any("XDG_CACHE_HOME=/tmp/" in words for words in of("ENV"))


@pytest.mark.parametrize("page", ["run-in-a-container", "table-builder-behind-a-proxy"])
def test_options_that_the_pages_name_exist(page: str) -> None:
    """Commands for containers and services are run by no test of the pages."""
    text = (ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8").replace("\\\n", " ")
    known = {name: {option.removesuffix("=") for option in options} for name, options in commands().items()}
    found = re.findall(r"discreet (serve|protect) ([^\n]*)", text)
    assert {name for name, _ in found} >= {"serve"}
    for name, words in found:
        named = set(re.findall(r"(?<!\S)--[a-z-]+", words)) - {
            "--workers"
        }  # one that damaged inputs never have
        assert named <= known[name], (name, named - known[name])
        assert named
