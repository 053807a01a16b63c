"""docs/reference/release-format.md names everything that a release holds."""

import json
import re
from pathlib import Path

from discreet.formats.dataset import facts
from discreet.formats.parquet import METADATA_PREFIX
from tests.release.small import ALL, cubes, publish

DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "release-format.md").read_text()


def keys(content: object) -> set[str]:
    if isinstance(content, dict):
        return {*content, *(key for value in content.values() for key in keys(value))}
    return {key for value in content for key in keys(value)} if isinstance(content, list) else set()


def test_every_key_of_the_manifest_is_documented(tmp_path: Path) -> None:
    publish(tmp_path / "r", formats=ALL)
    found = keys(json.loads((tmp_path / "r" / "manifest.json").read_text()))
    assert found - set(re.findall(r"`([a-z_0-9]+)`", DOCS)) == set()


def test_every_folder_and_metadata_key_is_documented(tmp_path: Path) -> None:
    publish(tmp_path / "r", formats=ALL)
    for path in (tmp_path / "r").iterdir():
        assert path.name in DOCS
    for key in facts(cubes()[0]):
        assert f"`{METADATA_PREFIX}{key}`" in DOCS
