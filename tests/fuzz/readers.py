"""The readers called directly: thousands of damaged files a minute, each read or refused."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.io.ptable_files import read_ptable
from discreet.io.register import Register
from discreet.io.secret import read_secret
from discreet.io.signing_key import read_private_key, read_public_key
from discreet.perturb.ledger import Ledger
from discreet.pipeline.check import check_data
from discreet.population.look import look
from discreet.programme.codelist import read_codelist
from discreet.programme.programme import inspect_programme, load_programme
from discreet.programme.sources import FileFormat, FileSource
from discreet.release.certify import verify_certificate
from discreet.release.reader import open_release, read_codes
from discreet.release.verify import verify
from discreet.serve.http.geometry import read_geometry
from discreet.serve.http.security import read_tokens
from tests.fuzz.damage import damaged, damaged_json

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Read = Callable[[Path], object]


def _records(path: Path) -> object:
    return check_data(load_programme(path.with_name("programme.toml")))


def _ledger(path: Path) -> object:
    return Ledger.open(path, lambda: NOON).verify()


def _look(path: Path) -> object:
    return look(FileSource(path.name, str(path.resolve()), FileFormat.CSV), "persons", path.name)


def _codes(path: Path) -> object:
    return read_codes(path), read_codelist(path, "LAU")


def _register(path: Path) -> object:
    return Register.of(path, read_secret("secret", {})).snapshot("2021", {})


def _release(path: Path) -> object:
    return open_release(path.parent)


def _verified(path: Path) -> object:
    return verify(Path(*path.parts[:1]))


READERS: tuple[tuple[str, int, Read], ...] = (  # a file, how often it is tried, and its reader
    ("programme.toml", 12, inspect_programme),
    ("private.toml", 8, inspect_programme),
    ("swap.toml", 8, inspect_programme),
    ("lau.csv", 10, _codes),
    ("r.csv", 10, read_ptable),
    ("keyed.csv", 8, read_ptable),
    ("ons.csv", 4, read_ptable),
    ("superstar.csv", 2, read_ptable),
    ("geometry.json", 10, read_geometry),
    ("release/manifest.json", 10, _release),
    ("release/manifest.json", 2, _verified),
    ("noisy/manifest.json", 6, _release),
    ("release/parquet/1.parquet", 2, _verified),
    ("release/sdmx/1.csv", 1, _verified),
    ("release/json-stat/1.json", 1, _verified),
    ("release/codelists/LAU.H.csv", 2, _verified),
    ("noisy/certificate.json", 1, verify_certificate),
    ("ledger.sqlite", 6, _ledger),
    ("persons.csv", 3, _records),
    ("persons.csv", 3, _look),
    ("tokens.json", 6, read_tokens),
    ("secret.register", 6, _register),
    ("k", 3, read_private_key),
    ("k.pub", 3, read_public_key),
)


def refused(read: Read, path: Path) -> bool:
    """Read a file; whether it was refused with a message. Anything else that is raised is a fault."""
    try:
        read(path)
    except DiscreetError as error:
        if not str(error).strip():
            raise ValueError("a refusal without a message") from error
        return True
    return False


def chosen(dice: random.Random, sound: dict[str, bytes]) -> tuple[str, bytes, Read]:
    """A file, a damaged content and the reader."""
    name, _, read = dice.choices(READERS, [often for _, often, _ in READERS])[0]
    spoil = damaged_json if name.endswith(".json") and not name.startswith("tokens") else damaged
    return name, spoil(sound[name], dice), read
