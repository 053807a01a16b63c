"""A small synthetic census and helpers to protect it, shared by the tests of the whole path."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import pytest

from discreet.io.register import Register
from discreet.pipeline.protect import Protected, protect
from discreet.programme.programme import load_programme
from discreet.synth import generate

SECRET = bytes(range(32))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census") / "census"
    generate(
        4000,
        7,
        folder,
        tables=["1.1", "2.1", "3.1", "3.3", "8.1", "10.1", "33.1", "34.1", "38.1", "39.1"],
        threads=1,
    )
    return folder


@pytest.fixture(scope="session")
def small_census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fewer tables and persons, in every kind of unit: where noise is drawn for empty cells, these decide the time."""
    folder = tmp_path_factory.mktemp("census") / "census"
    generate(1000, 7, folder, tables=["3.1", "8.1", "34.1", "38.1"], threads=1)
    return folder


def run(
    folder: Path, out: Path, secret: bytes = SECRET, threads: int = 1, register: Path | None = None
) -> Protected:
    """Protect; the register of the secret is beside the census where no other is given."""
    register = register or folder.with_name(f"{folder.name}.{crc32(secret)}.register")
    private = out.with_name(out.name + ".private.json")
    return protect(
        load_programme(folder / "programme.toml"),
        secret,
        out,
        private,
        clock=lambda: NOON,
        threads=threads,
        register=Register.of(register, secret),
    )


def contents(release: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(release)): path.read_bytes()
        for path in sorted(release.rglob("*"))
        if path.is_file()
    }


def with_cubes(declared: str, axes: Mapping[str, str]) -> str:
    """A programme of the synthetic census with other cubes, without noise and what follows it."""
    head, _, rest = declared.partition("[standard]")
    cubes = "".join(f'[[cubes]]\nid = "{name}"\naxes = {listed}\n' for name, listed in axes.items())
    return head + rest[rest.index("[[structural") :].partition("[noise]")[0] + cubes
