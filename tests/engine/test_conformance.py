"""One set of tests for every engine: the same release, byte by byte, however the records are divided."""

import json
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from discreet.audit.audit import MEASURES
from discreet.audit.case import recognise
from discreet.engine.spark import SparkEngine, _opened
from discreet.errors import GateBroken, Mistakes
from discreet.io.progress import Progress, Quiet
from discreet.io.register import Register
from discreet.io.serialize import json_text
from discreet.pipeline.audit import audit_release
from discreet.pipeline.check import check_data
from discreet.pipeline.protect import Protected, protect
from discreet.pipeline.swap import write_swap
from discreet.population.reading import needs_of
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.run.run import Engine
from tests.cases import few
from tests.engine.small_town import CELL_KEY, CUBES, divide, make_town, persons, write_text
from tests.pipeline.conftest import NOON, SECRET, contents
from tests.pipeline.small_country import NOISE, make_country

Case = Callable[[Path], Path]  # folder -> programme file
EVERY_FORMAT = (
    '[release]\nformats = ["parquet", "csv", "sdmx-csv", "json-stat", "px", "xlsx"]\nlevels = "split"\n'
)
SWAP = """
[swap]
k = 3
risk = ["AGE", "SEX"]
similar = [[{ composition = [] }]]
rate = 0.2
"""
UNWEIGHTED = CUBES.partition('[[cubes]]\nid = "weighted"')[0]


@pytest.fixture(scope="module", params=["embedded", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine | None:
    """Where a release is computed; the embedded engine is compared with itself on more threads."""
    return None if request.param == "embedded" else SparkEngine(request.getfixturevalue("spark"))


SPARK_IS_LONG = pytest.mark.parametrize("engine", few(["embedded", "spark"], "embedded"), indirect=True)


def made(
    programme: Path, out: Path, engine: Engine | None, threads: int = 1, progress: Progress | None = None
) -> Protected:
    """Protect; the seed of a snapshot is the same for all engines and all ways to write records."""
    register = Register.of(programme.with_name(f"{crc32(SECRET)}.register"), SECRET)
    register.bound("s", {}, bytes(32))
    return protect(
        load_programme(programme),
        SECRET,
        out,
        out.with_name(f"{out.name}.private.json"),
        clock=lambda: NOON,
        threads=threads,
        progress=progress,
        register=register,
        engine=engine,
    )


class References:
    """The release of each case by the embedded engine on one thread, made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, tuple[Path, dict[str, bytes], str]] = {}

    def of(self, name: str, write: Case) -> tuple[Path, dict[str, bytes], str]:
        """The programme, the files of its release, and the private manifest."""
        if name not in self._found:
            programme = write(self._folder / name)
            out = self._folder / f"{name} release"
            made(programme, out, None)
            private = out.with_name(f"{out.name}.private.json").read_text()
            self._found[name] = programme, contents(out), private
        return self._found[name]


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    return References(tmp_path_factory.mktemp("references"))


def town(noise: str = CELL_KEY, cubes: str = CUBES, more: str = "", parts: int = 3) -> Case:
    def write(folder: Path) -> Path:
        programme = make_town(folder, noise, cubes, more)
        divide(persons(), folder, parts, empty=True)
        return programme

    return write


def ready_made(folder: Path) -> Path:
    """Counts that another office has tabulated, beside cubes of records."""
    counts = pa.table(
        {
            "SEX": ["F", "F", "M", "M"],
            "WORK": ["E", "N", "E", "N"],
            "count": [5, 7, 11, 2],
            "key": [9, 8, 7, 2**31],
        }
    )
    cube = '[[cubes]]\nid = "given"\naxes = ["SEX", "WORK"]\ncounts = { file = "given.parquet" }\n'
    programme = town(cubes=UNWEIGHTED + cube)(folder)
    pq.write_table(counts, folder / "given.parquet")
    return programme


def country(folder: Path) -> Path:
    return make_country(folder, NOISE.replace('rho = "1/2"', 'rho = "1/2"\nsnapshot = "s"'))


def declared_noise(law: str, weighted: bool = False) -> str:
    """A law with a guarantee, drawn by description; the amounts are far too large for a real census."""
    largest = "largest_weight = 4\n" if weighted else ""
    return f'[noise]\n{law}\n{largest}allow_weak = true\nlarge_delta = true\nsnapshot = "s"\n'


NOISES = {  # every kind; whether it is added to weighted sums, too
    "cell keys": (CELL_KEY, True),
    "plain cell keys": ('[noise]\nkind = "cell-key"\nV = 3.0\nD = 6\njs = 1\nkeys = "plain"\n', True),
    "participants": (
        '[noise]\nkind = "geometric"\nepsilon = 9\nclaim = "none"\ndraw = "participants"\nkeep_zeros = "all"\n',
        False,
    ),
    "geometric": (declared_noise('kind = "geometric"\nepsilon = 20', weighted=True), True),
    "gaussian": (declared_noise('kind = "discrete-gaussian"\nrho = 4\ndelta = 1e-9', weighted=True), True),
    "laplace": (declared_noise('kind = "laplace"\nepsilon = 60\nbound = 30\ndelta = 0.01'), False),
    "normal": (declared_noise('kind = "normal"\nepsilon = 90\nbound = 30\ndelta = 0.01'), False),
    "hellinger": (declared_noise('kind = "hellinger"\nepsilon = 600'), False),
    "exponential": (
        declared_noise('kind = "exponential"\nepsilon = 90\ndelta = 0.01\nutility = "u.csv"'),
        False,
    ),
}


def random_town(seed: int) -> Case:
    """A random programme: noise, axes, bases, flags, weights, formats, swaps, and how the records are written."""
    random = np.random.default_rng(seed)
    noise, weighted = list(NOISES.values())[seed % len(NOISES)]
    cubes = []
    for k in range(5):
        axes = random.permutation(["GEO.H", "GEO.L", "SEX", "AGE", "WORK"]).tolist()[: random.integers(1, 4)]
        if {"GEO.L", "GEO.H"} <= set(axes):
            axes.remove("GEO.L")
        lines = [f'[[cubes]]\nid = "c{k}"\naxes = {json.dumps(axes)}']
        if random.random() < 0.4:
            lines.append('base = \'AGE in ("15-29", "30-49") or SEX == "F"\'')
        if random.random() < 0.4:
            lines.append('count = "commutes"')
        elif weighted and random.random() < 0.5:
            lines.append('weight = "factor"')
        cubes.append("\n".join(lines))
    formats = random.permutation(["parquet", "csv", "sdmx-csv", "json-stat", "px", "xlsx"])
    release = f"[release]\nformats = {json.dumps(formats[: random.integers(1, 3)].tolist())}\n"
    swap = SWAP if "snapshot" not in noise and random.random() < 0.4 else ""  # swaps break guarantees
    parts, mixed = int(random.integers(1, 6)), random.random() < 0.5

    def write(folder: Path) -> Path:
        programme = make_town(folder, noise, "\n" + "\n".join(cubes) + "\n", swap + release)
        divide(shuffled(persons()) if mixed else persons(), folder, parts, empty=bool(random.random() < 0.5))
        rows = [f"{a},{b},{-abs(a - b)}" for a in range(3) for b in range(-20, 23)]
        (folder / "u.csv").write_text("\n".join(["count,published,utility", *rows]))
        return programme

    return write


CASES = {
    "cell keys, every format": town(more=EVERY_FORMAT),
    "geometric": town(NOISES["geometric"][0]),
    "gaussian": town(NOISES["gaussian"][0]),
    "consistent": town(CELL_KEY, UNWEIGHTED, "[release]\nconsistent = true\n"),
    "consistent with a guarantee": town(NOISES["geometric"][0], UNWEIGHTED, "[release]\nconsistent = true\n"),
    "hierarchical": country,
    "swapped": town(more=SWAP),
    "ready-made": ready_made,
    **{f"random {seed}": random_town(seed) for seed in range(len(NOISES))},
}


@pytest.mark.parametrize(
    "name",
    few(CASES, "cell keys, every format", "consistent with a guarantee", "hierarchical", "random 1"),
)
def test_a_release_has_the_same_bytes(
    name: str, references: References, engine: Engine | None, tmp_path: Path
) -> None:
    programme, files, private = references.of(name, CASES[name])
    made(programme, tmp_path / "release", engine, threads=3)
    assert contents(tmp_path / "release") == files
    assert (tmp_path / "release.private.json").read_text() == private
    assert verify(tmp_path / "release").passed or name == "ready-made"  # its totals are of other persons
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(len(NOISES), 5 * len(NOISES)))
def test_more_random_programmes_have_the_same_bytes(
    seed: int, references: References, engine: Engine | None, tmp_path: Path
) -> None:
    programme, files, _ = references.of(f"random {seed}", random_town(seed))
    made(programme, tmp_path / "release", engine, threads=2)
    assert contents(tmp_path / "release") == files


def values(files: dict[str, bytes]) -> dict[str, bytes]:
    """All files but the manifest, whose digest of the inputs depends on how records are written."""
    return {name: held for name, held in files.items() if name != "manifest.json"}


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(5).permutation(len(table))))


def reordered(case: str, folder: Path) -> Path:
    """The programme of a case, its records in another order and in other files."""
    programme = ORDERED[case](folder)
    if (folder / "persons.csv").exists():
        first, *others = (folder / "persons.csv").read_text().splitlines()
        (folder / "persons.csv").write_text("\n".join([first, *sorted(others, key=lambda one: one[::-1])]))
    else:
        divide(shuffled(persons()), folder, 4)
    return programme


def divided(parts: int, empty: bool) -> Callable[[str, Path], Path]:
    def write(case: str, folder: Path) -> Path:
        programme = ORDERED[case](folder)
        divide(persons(), folder, parts, empty=empty)
        return programme

    return write


ORDERED = {
    "plain": town(),
    "geometric": CASES["geometric"],
    "swapped": CASES["swapped"],
    "hierarchical": CASES["hierarchical"],
}
DIVISIONS = [
    ("plain", divided(1, empty=False)),
    ("plain", divided(17, empty=True)),
    *((case, reordered) for case in ORDERED),
]


@pytest.mark.parametrize(("case", "write"), few(DIVISIONS, 1, 4))
def test_neither_files_nor_their_order_change_a_value(
    case: str,
    write: Callable[[str, Path], Path],
    references: References,
    engine: Engine | None,
    tmp_path: Path,
) -> None:
    _, files, _ = references.of(case, ORDERED[case])
    programme = write(case, tmp_path / case)  # the release is named after the folder
    made(programme, tmp_path / "release", engine)
    assert values(contents(tmp_path / "release")) == values(files)


def test_a_csv_file_is_read_by_several_tasks(
    references: References, engine: Engine | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(folder: Path) -> Path:
        programme = make_town(folder)
        programme.write_text(programme.read_text().replace('= "persons"', '= "persons.csv"'))
        write_text(persons(), folder / "persons.csv")
        return programme

    programme, files, _ = references.of("text", write)
    monkeypatch.setattr("discreet.engine.spark.CSV_BYTES", 1000)
    made(programme, tmp_path / "release", engine)
    assert contents(tmp_path / "release") == files
    if isinstance(engine, SparkEngine):
        loaded = load_programme(programme)
        assert loaded.population is not None
        (one,) = engine._divided([_opened(needs_of(loaded, loaded.population.units["persons"], ()), ())])
        assert [len(parts) for parts in one.parts] == [1] * 4


@SPARK_IS_LONG
def test_a_quarter_with_most_persons_is_no_exception(
    references: References, engine: Engine | None, tmp_path: Path
) -> None:
    def skewed(folder: Path) -> Path:
        programme = make_town(folder)
        divide(persons(skewed=True), folder, 5)
        return programme

    programme, files, _ = references.of("skewed", skewed)
    made(programme, tmp_path / "release", engine)
    assert contents(tmp_path / "release") == files


@SPARK_IS_LONG
def test_cells_are_the_same_in_parts_of_any_size(
    references: References, engine: Engine | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a few positions, rows of a few cells, several passes over the records."""
    programme, files, _ = references.of("plain", town())
    monkeypatch.setattr("discreet.engine.spark.CELLS_AT_ONCE", 300)
    made(programme, tmp_path / "release", engine)
    assert contents(tmp_path / "release") == files


def broken() -> dict[str, Callable[[pa.Table], pa.Table]]:
    def put(name: str, at: int, value: object) -> Callable[[pa.Table], pa.Table]:
        def change(table: pa.Table) -> pa.Table:
            column = table[name].to_pylist()
            column[at] = value
            index = table.schema.get_field_index(name)
            return table.set_column(index, name, pa.array(column, table.schema.field(name).type))

        return change

    def several(table: pa.Table) -> pa.Table:
        for name, at, value in (
            ("sex", 500, "X"),
            ("sex", 3, "Z"),
            ("factor", 10, -1.0),
            ("pid", 599, "P00000"),
            ("work", 301, "Q"),
        ):
            table = put(name, at, value)(table)
        return table

    def against_the_rule(table: pa.Table) -> pa.Table:
        young = table.filter(pc.less(table["age"], 15)).slice(0, 1)
        number = int(young["pid"][0].as_py()[1:])
        return put("work", number, "E")(table)

    return {
        "several": several,
        "a structural zero": against_the_rule,
        "an age below the first band": put("age", 400, -3),
        "a place that does not nest": put("district", 599, "A"),
        "no id": put("pid", 77, None),
        "no records": lambda table: table.slice(0, 0),
        "a missing column": lambda table: table.drop_columns(["sex"]),
    }


@pytest.mark.parametrize("name", few(broken(), "several", "a missing column"))
def test_mistakes_in_records_are_the_same_lines(
    name: str, references: References, engine: Engine | None, tmp_path: Path
) -> None:
    programme = make_town(tmp_path / "town")
    divide(broken()[name](persons()), tmp_path / "town", 4)
    with pytest.raises(Mistakes) as alone:
        made(programme, tmp_path / "reference", None)
    with pytest.raises(Mistakes) as raised:
        made(programme, tmp_path / "release", engine, threads=3)
    assert str(raised.value) == str(alone.value)
    assert not (tmp_path / "release").exists()
    loaded = load_programme(programme)
    assert check_data(loaded, engine=engine) == check_data(loaded)
    assert [path for path in tmp_path.rglob(".*") if not path.name.endswith(".lock")] == []


def without_sex(table: pa.Table) -> pa.Table:
    return table.drop_columns(["sex"])


def with_number_ids(table: pa.Table) -> pa.Table:
    return table.set_column(0, "pid", pa.array(range(len(table))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_sex, r"001\.parquet.*other columns|001\.parquet.*sex"),
        (with_number_ids, r"001\.parquet: .*column 'pid' has the type number, and text in the first file"),
    ],
)
def test_a_file_of_another_schema_is_the_same_line(
    change: Callable[[pa.Table], pa.Table], message: str, engine: Engine | None, tmp_path: Path
) -> None:
    programme = make_town(tmp_path / "town")
    divide(persons(), tmp_path / "town", 3)
    path = tmp_path / "town" / "persons" / "001.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    texts = []
    for one in (None, engine):
        with pytest.raises(Mistakes, match=message) as raised:
            made(programme, tmp_path / "release", one)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
    assert "\n" not in texts[0]
    assert not (tmp_path / "release").exists()


@SPARK_IS_LONG
def test_codes_of_another_type_in_one_file_change_no_value(
    references: References, engine: Engine | None, tmp_path: Path
) -> None:
    _, files, _ = references.of("plain", town())
    programme = make_town(tmp_path / "plain")
    divide(persons(), tmp_path / "plain", 3)
    path = tmp_path / "plain" / "persons" / "001.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("age")
    table = table.set_column(at, "age", table["age"].cast(pa.int64()))
    at = table.schema.get_field_index("sex")
    pq.write_table(table.set_column(at, "sex", table["sex"].dictionary_encode()), path)
    made(programme, tmp_path / "release", engine)
    assert values(contents(tmp_path / "release")) == values(files)


@SPARK_IS_LONG
def test_records_that_change_under_the_run_are_refused(engine: Engine | None, tmp_path: Path) -> None:
    programme = make_town(tmp_path / "town")
    divide(persons(), tmp_path / "town", 3)

    class Writer(Quiet):
        """Somebody writes a file of records while tables are made."""

        def stage(self, name: str, total: int | None = None) -> None:
            if name.startswith("perturbing"):
                pq.write_table(persons().slice(0, 5), tmp_path / "town" / "persons" / "001.parquet")

    with pytest.raises(Mistakes, match=r"001\.parquet.*changed while it was read; run again"):
        made(programme, tmp_path / "release", engine, progress=Writer())
    assert not (tmp_path / "release").exists()


def test_a_folder_that_cannot_be_written_is_the_same_line(engine: Engine | None, tmp_path: Path) -> None:
    programme = make_town(tmp_path / "town")
    divide(persons(), tmp_path / "town", 3)
    (tmp_path / "file").write_text("")
    texts = []
    for one in (None, engine):
        with pytest.raises(Mistakes) as raised:
            made(programme, tmp_path / "file" / "release", one)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
    assert "\n" not in texts[0]


def test_a_damaged_file_is_named(engine: Engine | None, tmp_path: Path) -> None:
    programme = make_town(tmp_path / "town")
    divide(persons(), tmp_path / "town", 3)
    path = tmp_path / "town" / "persons" / "001.parquet"
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(Mistakes, match=r"001\.parquet.*damaged"):
        made(programme, tmp_path / "release", engine)


@SPARK_IS_LONG
def test_swapped_microdata_have_the_same_bytes(
    references: References, engine: Engine | None, tmp_path: Path
) -> None:
    programme, _, _ = references.of("swapped", CASES["swapped"])
    loaded = load_programme(programme)
    one = write_swap(loaded, SECRET, tmp_path / "one", tmp_path / "one private")
    two = write_swap(loaded, SECRET, tmp_path / "two", tmp_path / "two private", 2, engine=engine)
    assert contents(one.microdata) == contents(two.microdata)
    assert contents(one.private)["log.parquet"] == contents(two.private)["log.parquet"]
    assert one.records == two.records


@SPARK_IS_LONG
def test_an_audit_finds_the_same(references: References, engine: Engine | None, tmp_path: Path) -> None:
    programme, _, _ = references.of("swapped", CASES["swapped"])
    made(programme, tmp_path / "release", None)
    release, loaded = open_release(tmp_path / "release"), load_programme(programme)
    without = set(MEASURES) - {"averaging", "disclosure", "utility"}
    found = [
        audit_release(recognise(loaded, SECRET, release, engine=one), release, without, None, None, tmp_path)
        for one in (None, engine)
    ]
    assert json_text(found[0]) == json_text(found[1])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@SPARK_IS_LONG
def test_gates_are_judged_alike(references: References, engine: Engine | None, tmp_path: Path) -> None:
    programme = town(more="[gates]\ntrue_uniques = 0.001\n")(tmp_path / "town")
    with pytest.raises(GateBroken) as alone:
        made(programme, tmp_path / "reference", None)
    with pytest.raises(GateBroken) as raised:
        made(programme, tmp_path / "release", engine)
    assert str(raised.value) == str(alone.value)
    assert not (tmp_path / "release").exists()
