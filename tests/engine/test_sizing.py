"""The sizing table of docs/how-to/move-to-spark.md is what the measured figures give."""

import json
from pathlib import Path

from benchmarks.sizing import COUNTRIES, FIGURES, costs, page, size

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "move-to-spark.md"


def test_the_table_of_the_page_follows_from_the_figures() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    shown = (
        PAGE.read_text(encoding="utf-8").partition("<!-- sizing -->\n")[2].partition("<!-- /sizing -->")[0]
    )
    assert shown.strip() == "\n".join(page(figures)).strip()


def test_costs_add_up_to_what_was_measured() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    by, largest = costs(figures), figures[-1]
    assert abs(size(largest["persons"], by).cpu / largest["spark_cpu"] - 1) < 1e-9
    sizes = [size(persons, by) for persons in COUNTRIES]
    assert [one.executors for one in sizes] == sorted(one.executors for one in sizes)
    assert all(one.hours <= 1 for one in sizes)
