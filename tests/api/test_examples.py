"""The example of every public name runs, and has the result that it shows."""

import doctest
import importlib
import pkgutil

import pytest

import discreet
import discreet.api
import discreet.inference

PACKAGES = (discreet.api, discreet.inference)
MODULES = [
    *(
        f"{package.__name__}.{one.name}"
        for package in PACKAGES
        for one in pkgutil.iter_modules(package.__path__)
    ),
    "discreet.errors",
    "discreet.maths.noise.ptable",
    "discreet.io.ptable_files",
    "discreet.perturb.ledger",
]
FOUND = [
    test
    for module in MODULES
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module))
    if test.examples
]


@pytest.mark.parametrize("example", FOUND, ids=lambda example: example.name.removeprefix("discreet."))
def test_the_example_runs(example: doctest.DocTest, request: pytest.FixtureRequest) -> None:
    example.globs["getfixture"] = request.getfixturevalue
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, clear_globs=False)
    assert found.failed == 0
    assert found.attempted > 0
