"""Signatures of releases, links, and values that no noise can give."""

import base64
import json
import os
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as ds
from discreet.errors import BrokenRelease, Mistakes
from discreet.io.signing_key import make_key, read_private_key, read_public_key
from discreet.release.folder import file_sha256
from discreet.release.manifest import Manifest
from discreet.release.sign import sign_release
from discreet.release.signature import Signed, signature_of
from discreet.release.verify import verify
from tests.release.small import publish


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    publish(tmp_path / "r")
    make_key(tmp_path / "k")
    assert sign_release(tmp_path / "r", read_private_key(tmp_path / "k")).passed
    return tmp_path


def reseal(folder: Path, place: str) -> None:
    """Rewrite the checksums of a file that was changed, as a forger would."""
    content = json.loads((folder / "manifest.json").read_text())
    for file in (*content["files"], *(file for cube in content["cubes"] for file in cube["files"])):
        if file["path"] == place:
            file["sha256"], file["bytes"] = file_sha256(folder / place), (folder / place).stat().st_size
    del content["seal"]
    (folder / "manifest.json").write_text(Manifest.model_validate(content).to_json())


def test_a_signature_proves_who_published_a_release(signed: Path) -> None:
    release, key = signed / "r", read_public_key(signed / "k.pub")
    assert verify(release, key).signature.state is Signed.VALID
    assert verify(release).signature.state is Signed.UNCHECKED
    make_key(signed / "other")
    found = verify(release, read_public_key(signed / "other.pub"))
    assert not found.passed
    assert "not by the office's key" in found.problems[0]


def test_a_forger_who_rewrites_the_checksums_is_found_by_the_signature_only(signed: Path) -> None:
    release, key = signed / "r", read_public_key(signed / "k.pub")
    readme = release / "README.md"
    readme.write_text(readme.read_text() + "Contact: forger\n")
    reseal(release, "README.md")
    assert verify(release, key).signature.state is Signed.WRONG
    (release / "manifest.sig").unlink()
    assert verify(release).passed  # what an unsigned release cannot show
    assert "Not signed" in verify(release).signature.sentence()
    make_key(signed / "forger")
    sign_release(release, read_private_key(signed / "forger"))
    assert verify(release).signature.state is Signed.UNCHECKED
    assert not verify(release, key).passed


def test_a_signature_of_another_release_does_not_fit(signed: Path, tmp_path: Path) -> None:
    other = json.loads(signature_of(b"another manifest", read_private_key(signed / "k")))
    for content in (json.dumps(other), "", "[]", "{", "[" * 100_000, '{"public_key": 1, "signature": "zz"}'):
        (signed / "r" / "manifest.sig").write_text(content)
        assert verify(signed / "r").signature.state is Signed.WRONG
        assert not verify(signed / "r").passed
    assert sign_release(signed / "r", read_private_key(signed / "k")).passed  # replaces it


@pytest.mark.parametrize("change", [{"kind": "x"}, {"algorithm": "Ed448"}, {"kind": None}, {"signature": 1}])
def test_a_signature_of_another_kind_is_none(signed: Path, change: dict[str, object]) -> None:
    place = signed / "r/manifest.sig"
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    assert verify(signed / "r", read_public_key(signed / "k.pub")).signature.state is Signed.WRONG


def test_only_a_release_that_passes_is_signed(signed: Path) -> None:
    (signed / "r" / "manifest.sig").unlink()
    (signed / "r" / "README.md").write_text("changed")
    assert not sign_release(signed / "r", read_private_key(signed / "k")).passed
    assert not (signed / "r" / "manifest.sig").exists()
    with pytest.raises(BrokenRelease, match="not signed"):
        ds.sign(signed / "r", signed / "k")


def test_keys_are_private_whole_and_of_the_right_kind(tmp_path: Path) -> None:
    public = make_key(tmp_path / "k")
    assert (tmp_path / "k").stat().st_mode & 0o77 == 0
    with pytest.raises(Mistakes, match="the file exists"):
        make_key(tmp_path / "k")
    with pytest.raises(Mistakes, match="no name of a file"):
        make_key(Path("/"))
    public.chmod(0o600)
    with pytest.raises(Mistakes, match="not a private key"):
        read_private_key(public)
    with pytest.raises(Mistakes, match="not a public key"):
        read_public_key(tmp_path / "k")
    (tmp_path / "k").chmod(0o644)
    with pytest.raises(Mistakes, match="other users"):
        read_private_key(tmp_path / "k")
    with pytest.raises(Mistakes, match="no such file"):
        read_public_key(tmp_path / "none")


def test_every_key_with_another_byte_is_a_key_or_a_mistake(tmp_path: Path) -> None:
    make_key(tmp_path / "key")
    read = {"key": read_private_key, "key.pub": read_public_key}
    for name, reads in read.items():
        path = tmp_path / name
        head, text, end, _ = path.read_text().split("\n")
        sound = base64.b64decode(text)
        refused = 0
        for at, byte in product(range(16), range(256)):  # which algorithm, and how long
            damaged = base64.b64encode(sound[:at] + bytes([byte]) + sound[at + 1 :]).decode()
            path.write_text("\n".join((head, damaged, end, "")))
            try:
                reads(path)
            except Mistakes:
                refused += 1
        assert refused > 3000


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    release = tmp_path / "r"
    (tmp_path / "latest").symlink_to("r")
    for path in (tmp_path / "latest", f"{tmp_path}/latest/"):
        with pytest.raises(BrokenRelease, match=r"latest: is a link, .* give the folder itself"):
            verify(path)
    (release / "README.md").rename(tmp_path / "elsewhere.md")
    (release / "README.md").symlink_to(tmp_path / "elsewhere.md")
    assert verify(release).problems == ("README.md: is a link; a release has files only",)
    (release / "README.md").unlink()
    os.mkfifo(release / "README.md")
    assert verify(release).problems[0] == "README.md: is not a file; a release has files only"
    (release / "manifest.json").rename(tmp_path / "m.json")
    (release / "manifest.json").symlink_to(tmp_path / "m.json")
    with pytest.raises(BrokenRelease, match="is a link"):
        verify(release)


def with_value(path: Path, value: float) -> None:
    """Change the last value of a Parquet file."""
    table = pq.read_table(path)
    values = table["value"].to_numpy().copy()
    values[-1] = value
    at = table.schema.get_field_index("value")
    pq.write_table(table.set_column(at, "value", pa.array(values, table.schema.field(at).type)), path)


def test_values_that_the_noise_cannot_give_are_found(tmp_path: Path) -> None:
    persons = {"pid": range(60), "sex": ["F", "M", "X"] * 20}
    census = ds.Population(persons=persons, person_id="pid")
    secret = ds.Secret(bytes(32)).save(tmp_path / "secret")
    noise = ds.CellKey(V=2, D=5, js=2)
    ds.protect(census, [ds.Cube("sex", id="1")], noise, secret=secret, out=tmp_path / "r", disclose="law")
    assert verify(tmp_path / "r").passed
    for value in (1, 2, 2**60):
        with_value(tmp_path / "r" / "parquet" / "1.parquet", value)
        reseal(tmp_path / "r", "parquet/1.parquet")
        found = f"cube 1: 1 values that its noise cannot give, for example {value}"
        assert verify(tmp_path / "r").problems == (found,)


def test_codelists_that_are_no_trees_are_found(tmp_path: Path) -> None:
    made = publish(tmp_path / "r")
    place = made.cubes[0].axes[0].codelist
    lines = (tmp_path / "r" / place).read_text().splitlines()
    swapped = [*lines[:2], *reversed(lines[2:])]
    for changed in (swapped, [*lines, "NEW,_T,one more"], [lines[0], "_T,X,all", *lines[2:]]):
        (tmp_path / "r" / place).write_text("\n".join(changed) + "\n")
        reseal(tmp_path / "r", place)
        assert not verify(tmp_path / "r").passed
