"""The example of every public name runs, and has the result that it shows."""

import doctest
import importlib
import pkgutil

import pytest

import discreet
import discreet.api

MODULES = [f"discreet.api.{module.name}" for module in pkgutil.iter_modules(discreet.api.__path__)]
FOUND = [
    test
    for module in MODULES
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module))
    if test.examples
]


@pytest.mark.parametrize("example", FOUND, ids=lambda example: example.name.removeprefix("discreet.api."))
def test_the_example_runs(example: doctest.DocTest, request: pytest.FixtureRequest) -> None:
    example.globs["getfixture"] = request.getfixturevalue
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, clear_globs=False)
    assert found.failed == 0
    assert found.attempted > 0
