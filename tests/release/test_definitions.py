"""Definitions and translations are in all files of a release that have a place for them, and are read back."""

import json
from dataclasses import replace
from pathlib import Path

from discreet.formats.dataset import dataset_of
from discreet.formats.json_stat import write_json_stat
from discreet.formats.px import write_px
from discreet.formats.sdmx_structures import write_structures
from discreet.programme.codelist import Breakdown
from discreet.programme.definitions import Definition
from discreet.programme.labels import Labels
from discreet.programme.sdmx_codelist import read_sdmx_codes
from discreet.release.assemble import release_manifest
from discreet.release.manifest import Digests, read_manifest
from discreet.release.reader import read_codes, write_codes
from discreet.text.phrase import Language, others_of, said, translated
from tests.release.small import PUBLICATION, cubes, publish, table

LABELS = Labels(
    {"AGE": translated("Age", {"de": "Alter"}), "SEX": "Sex"},
    {"AGE.M": translated("five-year groups", {"de": "Fünfjahresgruppen"})},
    {},
    {"AGE": Definition(translated("In completed years.", {"de": "In vollendeten Jahren."}), "Register")},
    {"AGE": translated("People", {"de": "Menschen"})},
)
CUBE = cubes()[1]
NAMED = replace(
    PUBLICATION,
    labels=LABELS,
    title=translated("Census", {"de": "Zählung"}),
    titles={CUBE.id: translated("By age", {"de": "Nach Alter"})},
)


def defined(axis: Breakdown) -> Breakdown:
    """An axis whose second code has a translation and a definition."""
    labels = (axis.labels[0], translated(axis.labels[1], {"de": "Anders"}), *axis.labels[2:])
    return replace(axis, labels=labels, definitions={axis.codes[1]: Definition("What it is.", "Office")})


def test_a_manifest_has_all_texts_and_reads_back(tmp_path: Path) -> None:
    plain = publish(tmp_path / "release")
    digests = Digests(inputs="1", parameters="2")
    made = release_manifest(NAMED, plain.cubes, plain.files, digests, "44")
    (tmp_path / "manifest.json").write_text(made.to_json(), encoding="utf-8")
    told = json.loads(made.to_json())
    assert told["title"] == "Census"
    assert told["labels"]["descriptions"] == {"AGE": "In completed years."}
    assert told["labels"]["translations"]["de"]["topics"] == {"AGE": "Menschen"}
    assert told["titles"]["de"][""] == "Zählung"
    assert "language" not in told
    again = read_manifest(tmp_path)
    assert again.to_json() == made.to_json()
    assert said(again.labels.variable("AGE"), Language.GERMAN) == "Alter"
    assert said(again.labels.definition("AGE").description, Language.GERMAN) == "In vollendeten Jahren."
    assert said(again.heading, Language.GERMAN) == "Zählung"
    entry = next(one for one in again.cubes if one.id == CUBE.id)
    assert said(again.title_of(entry), Language.GERMAN) == "Nach Alter"


def test_codelists_of_a_release_read_back(tmp_path: Path) -> None:
    axis = defined(CUBE.axes[0])
    write_codes(axis, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "code,parent,label,label.de,description,source"
    found = read_codes(tmp_path / "a.csv")
    assert (found.codes, found.labels) == (axis.codes, axis.labels)
    assert others_of(found.labels[1]) == {"de": "Anders"}
    assert found.definitions == axis.definitions
    write_codes(CUBE.axes[0], tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text().splitlines()[0] == "code,parent,label"


def test_sdmx_structures_have_all_languages_and_are_read_as_a_codelist(tmp_path: Path) -> None:
    axis = defined(CUBE.axes[0])
    cube = replace(CUBE, axes=(axis, *CUBE.axes[1:]))
    write_structures([cube], tmp_path / "s.xml", NAMED)
    text = (tmp_path / "s.xml").read_text(encoding="utf-8")
    assert 'xml:lang="de">Anders</com:Name>' in text
    name = next(line for line in text.split('Codelist id="')[1:] if axis.codes[1] in line).split('"')[0]
    codes = read_sdmx_codes(tmp_path / "s.xml", name)
    assert [one.code for one in codes] == list(axis.codes[1:])
    parents = [axis.codes[node] if node > 0 else "" for node in axis.parents[1:].tolist()]
    assert [one.parent for one in codes] == parents
    assert (codes[0].definition, others_of(codes[0].label)) == (
        axis.definitions[axis.codes[1]],
        {"de": "Anders"},
    )


def test_json_stat_and_px_have_notes(tmp_path: Path) -> None:
    whole = table(CUBE)
    axis = defined(CUBE.axes[0])
    made = dataset_of(replace(whole, cube=replace(whole.cube, axes=(axis, *CUBE.axes[1:]))), NAMED)
    write_json_stat(made, tmp_path / "a.json")
    dimensions = json.loads((tmp_path / "a.json").read_text())["dimension"]
    assert dimensions[axis.variable]["category"]["note"] == {axis.codes[1]: ["What it is. Source: Office"]}
    if "AGE" in dimensions:
        assert dimensions["AGE"]["note"] == ["In completed years.", "Source: Register"]
    write_px(made, tmp_path / "a.px")
    assert "VALUENOTE(" in (tmp_path / "a.px").read_text(encoding="utf-8-sig")
