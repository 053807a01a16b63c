"""The sizing table of docs/how-to/move-to-spark.md is what the measured figures give."""

import json
from pathlib import Path

from benchmarks.sizing import COUNTRIES, FIGURES, costs, one_task, page, size

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "move-to-spark.md"


def shown(name: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0].strip()


def test_the_tables_of_the_page_follow_from_the_figures() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert shown("sizing") == "\n".join(page(figures)).strip()
    assert shown("one task") == "\n".join(one_task()).strip()


def test_costs_add_up_to_what_was_measured() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    by, largest = costs(figures), figures[-1]
    assert abs(size(largest["persons"], by).cpu / largest["spark_cpu"] - 1) < 1e-9
    sizes = [size(persons, by) for persons in COUNTRIES]
    assert [one.executors for one in sizes] == sorted(one.executors for one in sizes)
    assert all(one.hours <= 1 for one in sizes)


def test_the_costs_of_ten_million_persons_predicted_those_of_fifty_million() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    largest = figures[-1]
    predicted = size(largest["persons"], costs(figures[:-1])).cpu
    told = f"had given {predicted:.0f} CPU s for 50 million, which then took {largest['spark_cpu']:.0f}"
    assert told in " ".join(PAGE.read_text(encoding="utf-8").split())
