"""Labels in the files of a release: people read them there, programs go on by the names."""

import json
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest
from pyjstat import pyjstat
from pysdmx.io import read_sdmx
from pysdmx.model import Codelist, ConceptScheme, Dataflow

from discreet.formats.dataset import dataset_of
from discreet.formats.json_stat import write_json_stat
from discreet.formats.publication import Publication
from discreet.formats.sdmx_structures import write_structures
from discreet.formats.xlsx import write_xlsx
from discreet.programme.labels import Labels
from discreet.release.assemble import release_manifest
from discreet.release.manifest import Digests, Manifest, read_manifest
from discreet.release.readme import readme
from tests.release.small import PUBLICATION, cubes, publish, table

LABELS = Labels(
    {"AGE": "Age", "SEX": "Sex", "GEO": "Place & region", "LOC": "Size of locality"},
    {"AGE.M": "five-year groups", "AGE.H": "single years", "GEO.L": "regions"},
    {"persons": "residents", "dwellings": "homes"},
)
LABELLED = replace(PUBLICATION, labels=LABELS)


def manifest_of(publication: Publication, like: Manifest) -> Manifest:
    digests = Digests(inputs="11", parameters="22", ptable="33")
    return release_manifest(publication, like.cubes, like.files, digests, "44")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return publish(tmp_path_factory.mktemp("plain") / "release")


def test_the_manifest_holds_the_labels_of_what_is_published(plain: Manifest) -> None:
    made = manifest_of(LABELLED, plain)
    assert json.loads(made.to_json())["labels"] == {
        "variables": {"AGE": "Age", "SEX": "Sex", "GEO": "Place & region"},
        "breakdowns": {"AGE.M": "five-year groups", "GEO.L": "regions"},
        "units": {"persons": "residents"},
    }


def test_a_manifest_with_labels_reads_back_and_is_sealed(tmp_path: Path, plain: Manifest) -> None:
    made = manifest_of(LABELLED, plain)
    (tmp_path / "manifest.json").write_text(made.to_json())
    assert read_manifest(tmp_path) == made
    assert made.seal() != plain.seal()


def test_a_manifest_without_labels_does_not_speak_of_them(tmp_path: Path, plain: Manifest) -> None:
    content = json.loads(plain.to_json())
    assert "labels" not in content
    (tmp_path / "manifest.json").write_text(plain.to_json())
    assert read_manifest(tmp_path).labels == Labels()


@pytest.mark.filterwarnings("ignore:Shouldn't use this function:DeprecationWarning")
def test_json_stat_labels_its_dimensions(tmp_path: Path) -> None:
    write_json_stat(dataset_of(table(cubes()[1]), LABELLED), tmp_path / "a.json")
    dimensions = json.loads((tmp_path / "a.json").read_text())["dimension"]
    assert {name: one["label"] for name, one in dimensions.items()} == {
        "SEX": "Sex",
        "AGE": "Age (five-year groups)",
        "GEO": "Place & region (regions)",
    }
    frame = pyjstat.Dataset.read((tmp_path / "a.json").read_text()).write("dataframe")
    assert list(frame.columns) == ["Sex", "Age (five-year groups)", "Place & region (regions)", "value"]


def test_sdmx_names_concepts_and_codelists(tmp_path: Path) -> None:
    write_structures(cubes(), tmp_path / "structures.xml", LABELLED)
    read = read_sdmx(tmp_path / "structures.xml").structures
    (concepts,) = (one for one in read if isinstance(one, ConceptScheme))
    names = {one.id: one.name for one in concepts}
    assert (names["AGE"], names["GEO"]) == ("Age", "Place & region")
    lists = {one.id: one.name for one in read if isinstance(one, Codelist)}
    assert (lists["CL_AGE_M"], lists["CL_AGE_L"]) == ("Age (five-year groups)", "Age (L)")
    flow = next(one for one in read if isinstance(one, Dataflow))
    assert flow.description == "Count of residents"


def test_a_workbook_is_headed_by_labels_beside_the_names(tmp_path: Path) -> None:
    write_xlsx(dataset_of(table(cubes()[1]), LABELLED), tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx", read_only=True)
    header = next(book["Data"].iter_rows(values_only=True))
    assert header == ("SEX", "Sex", "AGE", "Age", "GEO", "Place & region", "level", "value")
    notes = dict(book["Notes"].iter_rows(values_only=True, max_col=2))
    assert notes["Axes"] == "Sex, Age (five-year groups), Place & region (regions)"
    assert notes["Counted"] == "residents"


def test_the_readme_tells_what_the_names_mean(plain: Manifest) -> None:
    text = readme(LABELLED, plain.cubes)
    assert "| `AGE.M` | Age (five-year groups) |" in text
    assert "## Variables" not in readme(PUBLICATION, plain.cubes)
