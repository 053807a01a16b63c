"""The command line on damaged files and with hostile values: one sound call of each command, and what is done to it.

The options are those that the commands have: an option added later is tried without a word here.
"""

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer
from typer.main import get_command

from discreet.cli.app import app
from tests.fuzz.damage import VALUES

SOUND = {  # command -> a call that succeeds on the sound inputs, and how often it is tried
    "demo": ("demo --out made --persons 60 --quiet", 1),
    "init": ("init persons.csv --out made", 10),
    "check": ("check programme.toml", 10),
    "swap": ("swap swap.toml --secret secret --out made --report made2", 2),
    "protect": ("protect programme.toml --secret secret --out made", 10),
    "forecast": ("forecast programme.toml --epsilon 1", 1),
    "advise": ("advise programme.toml --without-data", 1),
    "audit": ("audit release --programme programme.toml --secret secret --without least_squares", 2),
    "attack": ("attack release --without averaging --without least_squares --seconds 1", 2),
    "utility": ("utility release --programme programme.toml --secret secret", 5),
    "verify": ("verify release --public-key k.pub", 10),
    "key": ("key --out made", 2),
    "sign": ("sign noisy --key k", 5),
    "ptable make": ("ptable make --out made --D 2 --V 1", 10),
    "ptable show": ("ptable show r.csv", 10),
    "ptable convert": ("ptable convert r.csv --to cantabular --out made --to-modulus 256", 5),
    "ptable check": ("ptable check r.csv", 10),
    "noise show": ("noise show --kind geometric --epsilon 1", 10),
    "noise sample": ("noise sample --kind geometric --epsilon 1 --n 5 --out made.parquet", 10),
    "risk differencing": ("risk differencing grids.csv --a grid --b lau --count count --V 1 --D 2", 5),
    "risk subsets": ("risk subsets --V 1 --D 2 --records 8 --queries 8 --repetitions 1", 5),
    "risk redundancy": ("risk redundancy programme.toml", 5),
    "risk averaging": ("risk averaging --V 2 --k 10 --t 5", 10),
    "risk bound": ("risk bound --V 1 --D 2 --tuples 5", 10),
    "risk dp": ("risk dp --kind geometric --noise-epsilon 1 --epsilon 1", 10),
    "risk bayes count": ("risk bayes count --rho 0.1 --prior 0.5 --published 1", 10),
    "risk bayes levels": ("risk bayes levels --rho 0.1 --level known=2,published=3", 10),
    "risk bayes histogram": ("risk bayes histogram --rho 0.1 --known 3,1,0x5", 10),
    "risk bayes hierarchy": ("risk bayes hierarchy --rho 0.1 --groups 3 --larger-rho 1/4 --counts 1,2", 5),
    "risk bayes nested": ("risk bayes nested --rho 0.1 --published 2 --within exact=12", 5),
    "infer independence": ("infer independence crossed.csv --kind geometric --epsilon 1 --simulations 20", 5),
    "infer binomial": ("infer binomial --kind geometric --epsilon 1 --n 10 --p0 0.5 --x 4", 10),
    "infer interval": ("infer interval --kind geometric --epsilon 1 --count 4", 10),
    "infer difference": ("infer difference --kind geometric --epsilon 1 --count 4 --other 2", 10),
    "infer ratio": ("infer ratio --kind geometric --epsilon 1 --count 4 --base 20", 10),
    "infer proportion": ("infer proportion --kind geometric --epsilon 1 --count 4 --whole 20", 10),
    "infer total": ("infer total crossed.csv --kind geometric --epsilon 1", 10),
    "infer weighted": ("infer weighted release --cube 1 --where SEX=F", 5),
    "infer estimate": ("infer estimate release --cube 1 --where SEX=F", 5),
    "infer loglinear": ("infer loglinear table.csv --kind geometric --epsilon 1 --model A*B", 5),
    "serve": ("serve release --store made --port 0", 5),
    "token create": ("token create tokens.json other", 10),
    "token list": ("token list tokens.json", 10),
    "token revoke": ("token revoke tokens.json someone", 10),
    "accounting compose": ("accounting compose --epsilon 1 --delta 1e-6", 10),
    "accounting convert": ("accounting convert --rho 1 --delta 1e-6", 10),
    "ledger create": ("ledger create made --secret secret", 5),
    "ledger account": ("ledger account ledger.sqlite b --secret secret --epsilon 1", 10),
    "ledger raise": ("ledger raise ledger.sqlite a --secret secret --epsilon 9 --reason more", 10),
    "ledger show": ("ledger show ledger.sqlite --secret secret", 10),
    "ledger verify": ("ledger verify ledger.sqlite --secret secret", 10),
    "synth": ("synth --out made --persons 60 --quiet", 1),
    "study prior-knowledge": ("study prior-knowledge --records 1000 --k 10 --epsilon 1 --quiet", 1),
    "study declared-geography": (
        "study declared-geography programme.toml --regions LAU.L --attributes SEX --clusters LAU --k 5",
        2,
    ),
    "secret": ("secret --out made", 2),
}
TREE = (
    "verify tree",
    "serve tree --store made --port 0",
    "infer interval --release tree --cube 1 --where SEX=F",
    "infer estimate tree --cube 1 --where SEX=F",
    "infer difference --release tree --cube 1 --where SEX=F --other-where SEX=M",
)
READ = {  # damaged file -> the commands that read it
    "programme.toml": (
        *("check programme.toml",) * 5,
        *("protect programme.toml --secret secret --out made",) * 5,
        "forecast programme.toml --epsilon 1",
    ),
    "private.toml": (
        *("check private.toml",) * 5,
        "protect private.toml --secret secret --out made --ledger ledger.sqlite --account a",
    ),
    "swap.toml": (*("check swap.toml",) * 5, "swap swap.toml --secret secret --out made --report made2"),
    "persons.csv": (
        *("check programme.toml",) * 3,
        *("init persons.csv --out made",) * 3,
        *("protect programme.toml --secret secret --out made",) * 3,
        "swap swap.toml --secret secret --out made --report made2",
    ),
    "sex.csv": ("check programme.toml",),
    "lau.csv": ("check programme.toml",),
    "grids.csv": ("risk differencing grids.csv --a grid --b lau --count count --V 1 --D 2",),
    "r.csv": (
        "ptable check r.csv",
        "ptable show r.csv --json",
        "ptable convert r.csv --to cantabular --out made --to-modulus 256",
        "noise show --ptable r.csv",
        "risk bound --ptable r.csv --tuples 5",
    ),
    "keyed.csv": (
        "ptable check keyed.csv --wrap 4:1",
        "ptable convert keyed.csv --wrap 4:1 --to r --out made",
    ),
    "ons.csv": ("ptable check ons.csv --wrap 4:1 --modulus 16", "ptable show ons.csv --wrap 4:1"),
    "superstar.csv": ("ptable check superstar.csv",),
    "lau.json": ("check ready.toml",),
    "structures.xml": ("check ready.toml",),
    "ready.csv": ("check ready.toml", "protect ready.toml --secret secret --out made"),
    "ready.toml": ("check ready.toml", "protect ready.toml --secret secret --out made"),
    "base.toml": ("check base.toml",),
    "records.sqlite": ("check base.toml",),
    "persons.csv.gz": ("check packed.toml", "init persons.csv.gz --out made"),
    "town/persons.parquet": (
        "check town/programme.toml",
        "init town/persons.parquet --out made",
        "init town/persons.parquet town/households.parquet --out made",
        "protect town/programme.toml --secret town/secret.key --out made",
    ),
    "tree.toml": (
        *("check tree.toml",) * 3,
        "forecast tree.toml",
        "protect tree.toml --secret secret --out made",
    ),
    "tree/manifest.json": TREE,
    "tree/estimates/1.parquet": TREE,
    "tree/measurements/H/detailed.parquet": TREE,
    "tree/hierarchy/areas.csv": TREE,
    "tree/hierarchy/categories.csv": TREE,
    "tree/certificate.json": ("verify tree --certificate",),
    "saved.sqlite": ("serve release --store saved.sqlite --port 0",),
    "release/manifest.json": (
        "verify release",
        "verify release --public-key k.pub --json",
        "serve release --store made --port 0",
        "infer interval --release release --cube 1 --where SEX=F",
        "attack release --without averaging --without least_squares --seconds 1",
        "protect programme.toml --secret secret --out release",
        "protect programme.toml --secret secret --out made --earlier release",
    ),
    "release/manifest.sig": ("verify release", "verify release --public-key k.pub"),
    "release/parquet/1.parquet": (
        "verify release",
        "serve release --store made --port 0",
        "infer interval --release release --cube 1 --where SEX=F",
        "infer total --release release --cube 1",
        "attack release --without averaging --without least_squares --seconds 1",
        "utility release --programme programme.toml --secret secret",
    ),
    "release/codelists/LAU.H.csv": ("verify release", "serve release --store made --port 0"),
    "noisy/certificate.json": ("verify noisy --certificate", "verify noisy/certificate.json --certificate"),
    "k.pub": ("verify release --public-key k.pub",),
    "k": ("sign noisy --key k",),
    "ledger.sqlite": (
        *("ledger verify ledger.sqlite --secret secret",) * 5,
        *("ledger show ledger.sqlite --secret secret",) * 5,
        "protect private.toml --secret secret --out made --ledger ledger.sqlite --account a",
    ),
    "table.csv": ("infer loglinear table.csv --kind geometric --epsilon 1 --model A*B",),
    "crossed.csv": (
        "infer independence crossed.csv --kind geometric --epsilon 1 --simulations 20",
        "infer total crossed.csv --kind geometric --epsilon 1",
    ),
    "utility.csv": ("noise show --kind exponential --epsilon 1 --utility utility.csv",),
    "secret": ("ledger verify ledger.sqlite --secret secret",),
    "secret.register": ("protect programme.toml --secret secret --out made",),
    "tokens.json": ("token list tokens.json", "serve release --store made --port 0 --tokens tokens.json"),
    "geometry.json": ("serve release --store made --port 0 --geometry geometry.json",),
}
SLOW = {"--engine", "--workers", "--areas"}  # other processes; many of them belong to tests of their own


@cache
def commands() -> dict[str, tuple[str, ...]]:
    """Every command without subcommands -> its options that take a value, and its flags."""
    root = get_command(app)
    return dict(_leaves(root, typer.Context(root), ()))


def _leaves(command: Any, context: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            yield from _leaves(command.get_command(context, name), context, (*path, name))
        return
    options = [one for one in command.params if one.opts[0].startswith("-") and one.opts[0] not in SLOW]
    yield " ".join(path), tuple(one.opts[0] + ("" if one.is_flag else "=") for one in options)


def hostile(dice: random.Random) -> list[str]:
    """A sound call with one to three values replaced, options added, or words left out."""
    names, weights = zip(*((name, weight) for name, (_, weight) in SOUND.items()), strict=True)
    (name,) = dice.choices(names, weights)
    words, first = SOUND[name][0].split(), len(name.split())
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        kind = dice.random()
        if kind < 0.45 and (options := commands()[name]):
            option = dice.choice(options)
            words += [option.removesuffix("="), *([dice.choice(VALUES)] if option.endswith("=") else [])]
        elif kind < 0.9 and len(words) > first:
            places = [at for at in range(first, len(words)) if not words[at].startswith("--")]
            if places:
                words[dice.choice(places)] = dice.choice(VALUES)
        elif len(words) > first:
            del words[dice.randrange(first, len(words))]
    return words
