"""Releases of format 2 made before levels were introduced: verified, read, inferred from, served."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.inference import released_cube
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import read_manifest
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.answer import Answer
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_release
from tests.release.small import publish
from tests.serve.conftest import NOON, query


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A release as it was written then: no column of levels, no key of the manifest that names it."""
    folder = tmp_path / "r"
    publish(folder, formats=(ReleaseFormat.PARQUET,))
    content = json.loads((folder / "manifest.json").read_text())
    assert content.pop("level_column") == "level"
    for file in (file for cube in content["cubes"] for file in cube["files"]):
        path = folder / file["path"]
        table = pq.read_table(path)
        buffer = pa.BufferOutputStream()
        pq.write_table(table.drop_columns(["level"]), buffer)
        path.write_bytes(buffer.getvalue().to_pybytes())
        file["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        file["bytes"] = path.stat().st_size
    del content["seal"]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    content["seal"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(content))
    return folder


def test_it_is_verified_and_read(earlier: Path) -> None:
    assert verify(earlier).problems == ()
    assert read_manifest(earlier).level_column == ""
    assert "level" not in open_release(earlier).read_cube("1.1").column_names


def test_it_can_be_inferred_from(earlier: Path) -> None:
    found = released_cube(earlier, "1.1").table(["GEO", "SEX"])
    assert found.table.counts.shape == (3, 2)
    assert found.noise.counts.change.variance > 0


def test_it_is_served(earlier: Path, tmp_path: Path) -> None:
    release = open_release(earlier)
    builder = serve_release(release, Store(tmp_path / "s.sqlite", lambda: NOON))
    answer = builder.ask(query("GEO.M", "SEX", "AGE.L"), "ann", job=True)
    assert isinstance(answer, Answer)
    assert int(answer.values.sum()) == sum(release.read_cube("1.1")["value"].to_pylist())
