"""Every option of every command is an argument of its function, or has a reason why it is none."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer
from typer.main import get_command

import discreet as ds
from discreet.cli.app import app

OUTPUT = {"json", "quiet", "help", "version"}  # results are objects, and nothing is printed
NOISE = {
    "kind", "epsilon", "noise-epsilon", "bound", "rho", "sigma", "sensitivity", "D", "V", "js", "utility", "ptable",
}  # fmt: skip
LAW: dict[str, str | None] = dict.fromkeys(NOISE, "law")  # noise(..) makes the law
LIMITS = dict.fromkeys(
    ("confidence", "uniques", "largest-change", "size", "relative", "share", "area-change"), "limits"
)
SESSION = ("axes", "filter", "requests", "duration", "rate", "own-server")
PICTURE = "chart() is an Altair object that is saved in any format"
SERVER = "belongs to the server that runs the application"
FILE_FORM = "a source says it: {'file': .., 'delimiter': ..}"

Names = dict[str, str | None]  # option -> argument; None: not an argument, for a reason below
FUNCTIONS: dict[str, tuple[Callable[..., Any], Names]] = {
    "demo": (ds.demo, {}),
    "init": (ds.Population.inferred, {
        "data": "persons", "out": None, "geography": "stated", "person-id": "stated", "household-id": "stated",
        "weight": "stated", "delimiter": None, "encoding": None, "decimal": None,
    }),
    "check": (ds.check, {"programme": "what"}),
    "swap": (ds.swap, {"programme": "what"}),
    "protect": (ds.protect, {"programme": "what", "report-only": None}),
    "forecast": (ds.forecast, {"programme": "what", "cube": None, "picture": None}),
    "advise": (ds.advise, {"programme": "what", "repeats": "curves", **LIMITS}),
    "audit": (ds.audit, {"programme": "census"}),
    "attack": (ds.attack, dict.fromkeys(SESSION)),
    "utility": (ds.utility, {"programme": "census", "with": None, "with-programme": None}),
    "verify": (ds.verify, {"folder": "release"}),
    "key": (ds.make_key, {}),
    "sign": (ds.sign, {"folder": "release"}),
    "ptable make": (ds.ptable, dict.fromkeys(("out", "to", "order", "secret", "modulus"))),
    "ptable show": (ds.read_ptable, {"file": "path", "picture": None}),
    "ptable convert": (ds.write_ptable, {
        "file": "table", "to-modulus": "modulus", **dict.fromkeys(("format", "modulus", "wrap", "small-n")),
    }),
    "ptable check": (ds.check_ptable, {"file": "table"}),
    "noise show": (ds.noise, {"counts": None}),
    "noise sample": (ds.NoiseLaw.sample, {**dict.fromkeys(NOISE), "out": None}),
    "risk differencing": (ds.risk.differencing, {**LAW, "V": "V", "data": "areas"}),
    "risk subsets": (ds.risk.subsets, LAW),
    "risk redundancy": (ds.risk.redundancy, {"programme": "what"}),
    "risk averaging": (ds.risk.averaging, {}),
    "risk bound": (ds.risk.bound, {}),
    "risk dp": (ds.risk.dp, {**LAW, "epsilon": "epsilon"}),
    "risk bayes count": (ds.risk.bayes, LAW),
    "risk bayes levels": (ds.risk.bayes_levels, {**LAW, "level": "others", "release": "others"}),
    "risk bayes histogram": (ds.risk.bayes_histogram, LAW),
    "risk bayes hierarchy": (ds.risk.bayes_hierarchy, {**LAW, "larger-rho": "larger", "larger-epsilon": "larger"}),
    "risk bayes nested": (ds.risk.bayes_nested, LAW),
    "serve": (ds.serve, {"source": "what", **dict.fromkeys(("host", "port", "workers", "proxies"))}),
    "token create": (ds.Tokens.create, {"file": None}),
    "token list": (ds.Tokens.listed, {"file": None}),
    "token revoke": (ds.Tokens.revoke, {"file": None}),
    "accounting compose": (ds.accounting, {
        **dict.fromkeys(("epsilon", "rho", "laplace", "gaussian"), "losses"), "at-epsilon": "epsilon",
    }),
    "accounting convert": (ds.convert, {}),
    "ledger create": (ds.open_ledger, {}),
    "ledger account": (ds.Ledger.create_account, {
        "where": None, "secret": None, **dict.fromkeys(("epsilon", "delta", "rho"), "budget"), "protects": "unit",
    }),
    "ledger raise": (ds.Ledger.raise_budget, {
        "name": "account", "where": None, "secret": None, **dict.fromkeys(("epsilon", "delta", "rho"), "budget"),
    }),
    "ledger show": (ds.Ledger.accounts, {"where": None, "secret": None}),
    "ledger verify": (ds.Ledger.verify, {"where": None, "secret": None}),
    "synth": (ds.synth, {}),
    "study prior-knowledge": (ds.study, {"out": None}),
    "study declared-geography": (ds.study_declared_geography, {"programme": "what", "out": None}),
    "secret": (ds.Secret.save, {"out": "path"}),
}  # fmt: skip
ELSEWHERE = {  # what is not an argument of the function -> where it is
    ("init", "out"): "Programme.to_toml(folder)", ("init", "delimiter"): FILE_FORM, ("init", "encoding"): FILE_FORM,
    ("init", "decimal"): FILE_FORM,
    ("protect", "report-only"): "rehearse(..)",
    ("forecast", "cube"): "to_pandas() has every cube", ("forecast", "picture"): PICTURE,
    ("ptable show", "picture"): PICTURE,
    **{("attack", one): "attack_server(..)" for one in SESSION},
    ("utility", "with"): "compare_utility({name: release})", ("utility", "with-programme"): "compare_utility",
    **{("ptable make", one): "write_ptable(..)" for one in ("out", "to", "order", "secret", "modulus")},
    **{("ptable convert", one): "read_ptable(..)" for one in ("format", "modulus", "wrap", "small-n")},
    ("noise show", "counts"): "row(count), deviation(count), loss(count)",
    **{("noise sample", one): "noise(..).sample(n)" for one in NOISE},
    ("noise sample", "out"): "an array is returned",
    **{("serve", one): SERVER for one in ("host", "port", "workers", "proxies")},
    **{(f"token {one}", "file"): "Tokens(path)" for one in ("create", "list", "revoke")},
    **{(f"ledger {one}", which): "open_ledger(where, secret)" for one in ("account", "raise", "show", "verify")
       for which in ("where", "secret")},
    ("study prior-knowledge", "out"): "to_pandas() and chart()",
    ("study declared-geography", "out"): "to_pandas() and chart()",
}  # fmt: skip
INFER = {  # sub-command -> function; their counts and noise are arguments, or come from a table of the release
    "independence": "independence", "binomial": "binomial", "interval": "interval", "difference": "difference",
    "ratio": "ratio", "proportion": "proportion", "total": "total", "weighted": "weighted",
    "estimate": "estimated", "loglinear": "loglinear",
}  # fmt: skip


def leaves(command: Any, name: str = "", parent: Any = None) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    context = typer.Context(command, info_name=name or "discreet", parent=parent)
    below = getattr(command, "list_commands", None)
    if below is None:
        yield name, command
        return
    for word in below(context):
        yield from leaves(command.get_command(context, word), f"{name} {word}".strip(), context)


COMMANDS = dict(leaves(get_command(app)))


def options(command: Any) -> Iterator[str]:
    for one in command.params:
        long = [text.removeprefix("--") for text in one.opts if text.startswith("--")]
        yield long[0] if long else one.name


def test_every_command_is_compared() -> None:
    compared = {*FUNCTIONS, *(f"infer {one}" for one in INFER)}
    assert set(COMMANDS) == compared


@pytest.mark.parametrize("command", FUNCTIONS)
def test_every_option_is_an_argument(command: str) -> None:
    function, names = FUNCTIONS[command]
    known = set(inspect.signature(function).parameters)
    offered = set(options(COMMANDS[command])) - OUTPUT
    for option in offered:
        wanted = names.get(option, option.replace("-", "_"))
        if wanted is None:
            assert (command, option) in ELSEWHERE, f"{command} --{option}"
        else:
            assert wanted in known, f"{command} --{option}: no argument {wanted}"
    assert set(names) <= offered | NOISE, "options that do not exist"


def test_everything_that_is_elsewhere_is_an_option() -> None:
    for command, option in ELSEWHERE:
        assert FUNCTIONS[command][1].get(option, option) is None, (command, option)


@pytest.mark.parametrize("command", INFER)
def test_every_kind_of_inference_has_a_function(command: str) -> None:
    assert INFER[command] in ds.inference.__all__
