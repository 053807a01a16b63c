"""Times that Python has not, in columns of files: years beyond 9999, nanoseconds, unknown zones."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.release.possible import impossible_values
from discreet.release.reader import open_release
from discreet.release.verify import verify
from tests.release.small import publish

RECORDS = 60
PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "id"
household_id = "home"
geography = ["town"]
[variables.GEO]
column = "town"
codelist = "GEO.csv"
breakdowns = { L = 1 }
[variables.SEX]
column = "sex"
codelist = "SEX.csv"
breakdowns = { L = 1 }
[[cubes]]
id = "1"
unit = "persons"
axes = ["GEO.L", "SEX.L"]
[noise]
kind = "cell-key"
V = 2.0
D = 5
"""
SOUND = {
    "id": pa.array(range(RECORDS)),
    "home": pa.array([at // 2 for at in range(RECORDS)]),
    "town": pa.array(["A" if at // 2 % 2 else "B" for at in range(RECORDS)]),
    "sex": pa.array(["F", "M"] * (RECORDS // 2)),
}
ODD = {
    "a day in the year 5,881,580": (2**31 - 1, pa.date32()),
    "a day of milliseconds beyond all years": (2**62, pa.date64()),
    "a time before the year 1": (1 - 2**63, pa.timestamp("us")),
    "a nanosecond": (1, pa.timestamp("ns")),
    "an unknown zone": (1, pa.timestamp("us", "Nowhere/Nothing")),
    "a negative time of a day": (-5, pa.time32("ms")),
    "a time of a day of many days": (2**62, pa.time64("us")),
    "nanoseconds of many days": (2**62 + 1, pa.time64("ns")),
    "a duration of many years": (2**62, pa.duration("s")),
}


def odd(value: int, kind: pa.DataType, records: int = RECORDS) -> pa.Array:
    return pa.array([value] * records, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


@pytest.mark.parametrize("column", list(SOUND))
@pytest.mark.parametrize("name", list(ODD))
def test_columns_of_records_are_read_or_refused(
    name: str, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for codelist, codes in (("GEO", "AB"), ("SEX", "FM")):
        rows = "".join(f"{code},_T,{code}\n" for code in codes)
        Path(f"{codelist}.csv").write_text(f"code,parent,label_en\n_T,,Total\n{rows}")
    Path("programme.toml").write_text(PROGRAMME)
    Path("key").write_text("ab" * 32)
    Path("key").chmod(0o600)
    pq.write_table(pa.table({**SOUND, column: odd(*ODD[name])}), "persons.parquet")
    for command in (
        "check programme.toml",
        "protect programme.toml --secret key --out release",
        "init persons.parquet --out draft",
    ):
        done = CliRunner().invoke(app, command.split())
        refused = isinstance(done.exception, Mistakes)
        assert refused or done.exception is None, f"{command}: {done.exception!r}"
        if column in ("town", "sex"):  # no code of theirs
            assert refused or command.startswith("init"), command


@pytest.mark.parametrize("name", list(ODD))
def test_values_of_a_release_are_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    publish(folder)
    release = open_release(folder)
    cube = release.manifest.cubes[0]
    file = next(folder.glob("parquet/*.parquet"))
    table = pq.read_table(file)
    values = odd(*ODD[name], records=len(table))
    pq.write_table(table.set_column(table.schema.get_field_index("value"), "value", values), file)
    assert impossible_values(folder, release.manifest, cube) is None
    assert verify(folder).problems
