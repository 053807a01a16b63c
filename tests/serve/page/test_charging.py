"""Where answers are paid for, the page tells the price and what is left before, and a link spends nothing."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect

from discreet.io.register import Register
from discreet.perturb.ledger import Ledger
from discreet.serve.http.app import create_app
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme
from tests.serve.conftest import SECRET
from tests.serve.http.conftest import running, settings_in
from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, key, link, run
from tests.serve.test_budget import GEOMETRIC, declared


@pytest.fixture
def charging(census: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server on which each user may spend some epsilon."""
    account = f"account = {{ each = 1, user = {request.param} }}"
    programme = declared(census, tmp_path / "c", GEOMETRIC, account)
    clock = lambda: datetime.now(UTC)  # noqa: E731
    ledger = Ledger.create(str(tmp_path / "l.sqlite"), clock)
    builder = serve_programme(
        programme,
        SECRET,
        Store(tmp_path / "s.sqlite", clock),
        ledger=ledger,
        register=Register.of(tmp_path / "register", SECRET),
    )
    with running(create_app(builder, settings_in(tmp_path))) as found:
        yield found


@pytest.mark.parametrize("charging", [80], indirect=True)
def test_an_example_is_shown_with_its_price_and_costs_nothing_by_one_click(
    opens: Opens, charging: str
) -> None:
    page = opens(at=charging)
    expect(page.locator(".offer .price").first).to_contain_text("Costs ")
    expect(page.locator(".figure, .small-pyramid")).to_have_count(0)  # no table is free yet
    assert page.locator(".offer .price").count() == page.locator("#place-answer .offer").count(), (
        "all can be paid"
    )
    key(page, "example-0").click()
    expect(page.locator(".card")).not_to_have_count(0)
    expect(key(page, "run")).to_contain_text("Show table for")
    expect(key(page, "run")).to_be_focused()  # with its price: nothing is charged by one click
    expect(page.locator(".budget")).to_contain_text("80 of 80 is left")  # nor by the start page


@pytest.mark.parametrize("charging", [5], indirect=True)
def test_prices_are_told_before(opens: Opens, charging: str) -> None:
    page = opens(at=charging)
    expect(page.locator("#place-answer .offer")).to_have_count(0)  # the budget pays none of the examples
    page = opens(link(rows=["OCC"]), at=charging)
    budget = page.locator(".budget")
    expect(budget).to_contain_text("of your privacy budget")
    expect(budget).to_contain_text("5 of 5 is left")
    price = float(budget.get_attribute("data-price") or 0)
    assert 0 < price < 5
    assert page.locator("table.grid").count() == 0, "a link spends nothing"
    expect(key(page, "run")).to_have_text(f"Show table for {price:.3f}")
    run(page)
    expect(budget).to_contain_text("Costs nothing")
    assert float(budget.get_attribute("data-left") or 0) == pytest.approx(5 - price)
    add(page, "HAR", "LOC")
    expect(budget).to_contain_text("Only ")
    expect(key(page, "run")).to_have_count(0)
    expect(page.locator("#place-verdict .refusal")).not_to_contain_text(re.compile("epsilon|axes"))
    offer = page.locator("#place-verdict button.offer").first
    cost = float(re.findall(r"Costs ([\d.]+) of your privacy budget", offer.inner_text())[0])
    assert 0 < cost <= 5 - price, "only what can be paid, with its price"
    offer.click()
    expect(key(page, "run")).to_have_text(f"Show table for {cost:g}")
    expect(page.locator("#place-verdict .refusal")).to_have_count(0)
    assert float(budget.get_attribute("data-left") or 0) == pytest.approx(5 - price), "nothing is charged"
