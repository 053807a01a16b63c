from pathlib import Path

from discreet.release.readme import readme
from tests.release.small import ALL, PUBLICATION, SEX, cube, publish, table


def test_the_readme_explains_the_release(tmp_path: Path) -> None:
    made = publish(tmp_path / "r", formats=ALL)
    text = (tmp_path / "r" / "README.md").read_text()
    assert "Totals may not add up" in text
    assert "Zeros are not listed" in text
    assert PUBLICATION.noise.sentence() in text
    for entry in made.cubes:
        assert f"| {entry.id} |" in text
    assert 'pd.read_parquet("parquet/1.1.parquet")' in text
    assert "sdmx/structures.xml" in text


def test_the_readme_lists_only_what_is_there(tmp_path: Path) -> None:
    publish(tmp_path / "r")
    text = (tmp_path / "r" / "README.md").read_text()
    assert "xlsx" not in text
    assert "weight" not in text


def test_weights_are_explained(tmp_path: Path) -> None:
    made = publish(tmp_path / "r", tables=[table(cube("w", SEX, weight="grossing"))])
    assert "mean weight" in readme(PUBLICATION, made.cubes)
    assert "persons, weighted by grossing" in readme(PUBLICATION, made.cubes)


def test_an_empty_release_has_a_readme() -> None:
    assert "no tables" in readme(PUBLICATION, [])
