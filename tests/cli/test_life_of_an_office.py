"""docs/how-to/life-of-an-office.md: its commands run as they are, in order, and do what the text around them says."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.cli.app import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "life-of-an-office.md"
BLOCK = re.compile(r"<!-- prepare: (.*?) -->\n```bash\n(.*?)```", re.DOTALL)
PERSONS = Path("census/persons.parquet")


def newcomer(persons: pa.Table) -> pa.Table:
    """A person like the last one, under a new id."""
    last = persons.slice(persons.num_rows - 1)
    identity = persons.column_names[0]
    old = last[identity][0].as_py()
    new = f"{old}x" if isinstance(old, str) else old + 1_000_003
    column = pa.chunked_array([pa.array([new], type=last[identity].type)])
    return pa.concat_tables([persons, last.set_column(0, last.schema.field(0), column)])


def write_more_tables() -> None:
    text = Path("census/programme.toml").read_text()
    assert '"8.1"' in text
    Path("census/more.toml").write_text(text.replace('"8.1"', '"8.1", "10.1"', 1))


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepare(how: str, published: pa.Table | None) -> None:
    if "one person comes" in how:
        assert published is not None
        pq.write_table(newcomer(published), PERSONS)
    if "one person leaves" in how or how == "as published":
        pq.write_table(published, PERSONS)
    if "more tables" in how:
        write_more_tables()
    if how == "plain keys":
        text = Path("census/programme.toml").read_text()
        Path("census/plain.toml").write_text(text.replace("[noise]\n", '[noise]\nkeys = "plain"\n', 1))
        shutil.copy("office.key", "old.key")
    if how == "next year":
        assert published is not None
        pq.write_table(published.slice(100), PERSONS)


def test_every_command_runs_and_says_what_the_page_says(
    office: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: dict[str, str] = {}
    published: pa.Table | None = None
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == PAGE.read_text().count("```bash")
    for how, commands in blocks:
        prepare(how, published)
        for line in commands.strip().splitlines():
            command, _, expected = line.partition("# exit code ")
            monkeypatch.setattr(sys, "argv", shlex.split(command))
            code = 0
            try:
                main()
            except SystemExit as stopped:
                code = int(stopped.code or 0)
            heard = capsys.readouterr()
            assert code == int(expected or 0), (line, heard.err)
            said[f"{how}: {command.strip()}"] = heard.out + heard.err
        if published is None:
            published = pq.read_table(PERSONS)

    def of(how: str, word: str) -> str:
        return next(text for key, text in said.items() if key.startswith(how) and word in key)

    assert (
        said["nothing: discreet protect census/programme.toml --secret office.key --out release --quiet"]
        == ""
    )
    assert "1 person exposed" in of("one person comes", "protect")
    assert "1 person exposed" in of("nothing", "attack trial")
    assert "1 person exposed" in of("nothing", "audit trial")
    assert of("one person leaves", "--out more") == ""
    assert "independent noise: averaging" in of("next year", "protect")
    assert of("as published", "--out upgraded") == ""
