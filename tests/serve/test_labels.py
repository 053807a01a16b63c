"""What readers see is the same over the records and over the public files of their release."""

from dataclasses import replace
from pathlib import Path

from discreet.audit.evidence import Universe, published
from discreet.programme.labels import NO_LABELS
from discreet.programme.programme import Programme
from discreet.programme.serve import DEFAULT_SERVE
from discreet.release.reader import Release, open_release
from discreet.serve.catalogue import Catalogue, programme_catalogue
from discreet.serve.http.api import catalogue_json
from discreet.serve.open import TableBuilder
from discreet.serve.released import release_catalogue


def of_release(release: Release) -> Catalogue:
    universes: tuple[Universe, ...] = published(release).universes
    return release_catalogue(release, universes, DEFAULT_SERVE)


def test_a_release_is_served_with_the_labels_of_its_programme(
    builder: TableBuilder, release: Release
) -> None:
    records, files = builder.catalogue, of_release(release)
    assert files.heading == records.heading == "Synthetic census"
    for name, variable in files.variables.items():
        assert files.labels.variable(name) == records.labels.variable(name) != name
        for axis in variable.breakdowns:
            assert files.labels.axis(axis) == records.labels.axis(axis) != axis


def test_a_release_without_labels_is_served_by_names(release: Release, tmp_path: Path) -> None:
    bare = release.manifest.model_copy(update={"labels": NO_LABELS, "title": ""})
    for entry in release.folder.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").write_text(bare.to_json())
    assert "labels" not in bare.to_json().partition('"cubes"')[0]
    told = catalogue_json(of_release(open_release(tmp_path)))
    assert told["title"] == told["name"]
    assert all(one["label"] == one["name"] for one in told["variables"])
    levels = {axis["name"]: axis["label"] for one in told["variables"] for axis in one["breakdowns"]}
    assert (levels["AGE.M"], levels["SEX"]) == ("M", "SEX")


def test_the_catalogue_tells_labels_beside_names(programme: Programme, builder: TableBuilder) -> None:
    labels = replace(programme.labels, units={"persons": "residents"})
    told = catalogue_json(programme_catalogue(replace(programme, labels=labels), builder.catalogue.noise))
    assert told["units"][0] == "persons"
    assert (told["unit_labels"]["persons"], told["unit_labels"]["families"]) == ("residents", "families")
    age = next(one for one in told["variables"] if one["name"] == "AGE")
    assert age["label"] == "Age"
    assert [axis["label"] for axis in age["breakdowns"]] == [
        "broad groups",
        "five-year groups",
        "single years",
    ]


def test_labels_of_what_is_not_served_are_not_told(programme: Programme, builder: TableBuilder) -> None:
    narrow = replace(programme, serve=replace(DEFAULT_SERVE, variables=("SEX", "AGE")))
    assert set(programme_catalogue(narrow, builder.catalogue.noise).labels.variables) == {"SEX", "AGE"}
