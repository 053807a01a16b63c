"""The readers called directly: thousands of damaged files a minute, each read or refused."""

import contextlib
import hashlib
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import text

from discreet.audit.evidence import published
from discreet.errors import BrokenRelease, DiscreetError, Mistakes
from discreet.io.ptable_files import read_ptable
from discreet.io.ptable_keyed import WrapRule
from discreet.io.register import Register
from discreet.io.secret import read_secret
from discreet.io.signing_key import read_private_key, read_public_key
from discreet.maths.cells.keys import derive
from discreet.perturb.ledger import Ledger
from discreet.pipeline.check import check_data
from discreet.population.look import look
from discreet.programme.codelist import read_codelist
from discreet.programme.programme import inspect_programme, load_programme
from discreet.programme.sdmx_codelist import read_sdmx_codes
from discreet.programme.serve import HistoryRule
from discreet.programme.sources import FileFormat, FileSource
from discreet.release.certify import verify_certificate
from discreet.release.reader import open_release, read_codes
from discreet.release.signature import read_signature
from discreet.release.verify import Verification, verify
from discreet.serve.history import History
from discreet.serve.http.geometry import read_geometry
from discreet.serve.http.tokens import read_tokens
from discreet.serve.jobs_store import Store
from tests.fuzz.oracle import meaningless, wrong_ending
from tests.fuzz.tables import spoiled

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Read = Callable[[Path], object]


def checked(programme: str) -> Read:
    """The records of a programme of the same folder."""

    def read(path: Path) -> object:
        if found := check_data(load_programme(path.with_name(programme))):
            raise Mistakes(found)
        return found

    return read


def _ledger(path: Path) -> object:
    if found := Ledger.open(path, lambda: NOON, derive(read_secret("secret", {}), "ledger")).verify():
        raise Mistakes(found)
    return found


def _look(path: Path) -> object:
    return look(FileSource(path.name, str(path.resolve()), FileFormat.CSV), "persons", path.name)


def _codelist(path: Path) -> object:
    return read_codelist(path, "LAU")


def _wrapped(path: Path) -> object:
    return read_ptable(path, wrap=WrapRule(4, 1))


def _register(path: Path) -> object:
    return Register.of(path, read_secret("secret", {})).snapshot("2021", {})


def _release(path: Path) -> object:
    return open_release(path.parent)


def _verified(path: Path) -> object:
    found = verify(Path(*path.parts[:1]))
    _require_passed(found)
    return found


def _require_passed(found: Verification) -> None:
    if found.problems:
        raise BrokenRelease(found.problems[0])


def forged(path: Path) -> object:
    """A release whose file was changed together with its checksums: verified, opened, read and served."""
    folder = Path(*path.parts[:1])
    reseal(folder)
    found = verify(folder)
    opened = open_release(folder)
    for cube in opened.manifest.cubes:
        with contextlib.suppress(DiscreetError):
            opened.read_cube(cube.id)
    published(opened)
    _require_passed(found)
    return found


def reseal(folder: Path) -> None:
    """Write the checksums of the files that are there into the manifest, as a forger would, who has no signature."""
    (folder / "manifest.sig").unlink(missing_ok=True)
    try:
        content = json.loads((folder / "manifest.json").read_bytes())
        content.pop("seal", None)
        for file in (*content["files"], *(file for cube in content["cubes"] for file in cube["files"])):
            stored = (folder / file["path"]).read_bytes()
            file |= {"sha256": hashlib.sha256(stored).hexdigest(), "bytes": len(stored)}
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        content["seal"] = hashlib.sha256(text.encode()).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(content))
    except (ValueError, TypeError, KeyError, AttributeError, OSError, RecursionError):
        return  # no forger gets so far


def _sdmx(path: Path) -> object:
    return read_sdmx_codes(path, "CL_LAU" if path.suffix == ".json" else "CL_SEX")


def _signature(path: Path) -> object:
    return read_signature(path.parent, read_public_key(Path("k.pub")))


def _store(path: Path) -> object:
    store = Store(path, lambda: NOON)
    with contextlib.closing(store.database):
        History(store.database, HistoryRule())
        with store.database.reading() as connection:
            names = [str(name) for (name,) in connection.execute(text("SELECT id FROM serve_queries"))]
        return [store.saved_query(name) for name in names], store.jobs("x"), store.claim_job("w", 1)


READERS: tuple[tuple[str, int, Read], ...] = (  # a file, how often it is tried, and its reader
    ("programme.toml", 12, inspect_programme),
    ("private.toml", 8, inspect_programme),
    ("swap.toml", 8, inspect_programme),
    ("tree.toml", 8, inspect_programme),
    ("ready.toml", 4, inspect_programme),
    ("base.toml", 4, inspect_programme),
    ("town/programme.toml", 8, inspect_programme),
    ("lau.csv", 10, _codelist),
    ("lau.json", 6, _sdmx),
    ("structures.xml", 4, _sdmx),
    ("r.csv", 10, read_ptable),
    ("keyed.csv", 8, _wrapped),
    ("ons.csv", 4, _wrapped),
    ("superstar.csv", 2, read_ptable),
    ("geometry.json", 10, read_geometry),
    ("release/manifest.json", 5, _release),
    ("release/manifest.json", 2, _verified),
    ("release/manifest.json", 6, forged),
    ("release/parquet/1.parquet", 1, _verified),
    ("release/parquet/1.parquet", 3, forged),
    ("release/sdmx/1.csv", 1, _verified),
    ("release/json-stat/1.json", 1, _verified),
    ("release/codelists/LAU.H.csv", 2, forged),
    ("release/codelists/LAU.H.csv", 4, read_codes),
    ("release/manifest.sig", 3, _signature),
    ("noisy/manifest.json", 3, _release),
    ("noisy/manifest.json", 4, forged),
    ("noisy/certificate.json", 1, verify_certificate),
    ("tree/manifest.json", 3, forged),
    ("tree/certificate.json", 1, verify_certificate),
    ("tree/estimates/1.parquet", 1, forged),
    ("tree/measurements/H/detailed.parquet", 1, forged),
    ("tree/hierarchy/areas.csv", 1, forged),
    ("tree/hierarchy/categories.csv", 1, forged),
    ("ledger.sqlite", 6, _ledger),
    ("saved.sqlite", 3, _store),
    ("persons.csv", 3, checked("programme.toml")),
    ("persons.csv", 3, _look),
    ("persons.csv.gz", 2, checked("packed.toml")),
    ("records.sqlite", 2, checked("base.toml")),
    ("ready.csv", 4, checked("ready.toml")),
    ("town/persons.parquet", 4, checked("programme.toml")),
    ("town/households.parquet", 2, checked("programme.toml")),
    ("tokens.json", 6, read_tokens),
    ("secret.register", 6, _register),
    ("k", 3, read_private_key),
    ("k.pub", 3, read_public_key),
)


class Senseless(Exception):
    """A damaged file was accepted that has no meaning any more, or was refused in a wrong way."""


def refused(read: Read, path: Path, sound: bytes = b"", secret: str = "") -> bool:
    """Read a file; whether it was refused with a message, without the secret. Anything else that is raised is a fault.

    A file that is accepted has a meaning, where an independent reader can tell.
    """
    content = path.read_bytes() if sound else b""
    try:
        found = read(path)
    except DiscreetError as error:
        if wrong := wrong_ending(2, str(error), ["read"], secret or read_secret("secret", {}).hex()):
            raise Senseless(f"{wrong}: {read.__name__} of {path}") from error
        return True
    if sound and read not in FREE and (wrong := meaningless(str(path), content, sound, found)):
        raise Senseless(f"accepted: {wrong}")
    return False


FREE = (forged, _look)  # what is changed with its checksums, or described as it is


def chosen(dice: random.Random, sound: dict[str, bytes]) -> tuple[str, bytes, Read]:
    """A file, a damaged content and the reader."""
    name, _, read = dice.choices(READERS, [often for _, often, _ in READERS])[0]
    return name, spoiled(name, sound[name], dice), read
