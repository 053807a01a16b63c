"""The golden release: the same census, secret and version give these bytes, on every machine.

If a change of the release is intended, run this file as a script from the root and commit the new digests.
"""

import hashlib
import json
import tempfile
from pathlib import Path

from discreet.synth import generate
from tests.pipeline.conftest import contents, run

GOLDEN = Path(__file__).with_name("golden.json")
EXTRA = '[release]\nname = "golden"\nformats = ["parquet", "csv", "sdmx-csv", "json-stat", "xlsx"]\ndisclose = "law"\n'


def digests(folder: Path) -> dict[str, str]:
    generate(2000, 11, folder / "census", tables=["1.1", "3.3", "35.1", "36.1", "40.1"], threads=2)
    programme = folder / "census/programme.toml"
    declared, _, _ = programme.read_text().partition("[release]")
    programme.write_text(declared + EXTRA)
    run(folder / "census", folder / "release")
    return {name: hashlib.sha256(held).hexdigest() for name, held in contents(folder / "release").items()}


def test_the_release_is_golden_byte_for_byte(tmp_path: Path) -> None:
    made, golden = digests(tmp_path), json.loads(GOLDEN.read_text())
    assert sorted(made) == sorted(golden)
    assert {name for name in made if made[name] != golden[name]} == set()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        GOLDEN.write_text(json.dumps(digests(Path(place)), indent=1) + "\n")
