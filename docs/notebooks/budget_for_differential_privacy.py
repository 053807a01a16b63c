# %% [markdown]
# # Differential privacy with a budget
#
# Noise with a guarantee, charged to an account that cannot be overdrawn.

# %%
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet as ds

df = ds.synth(2_000, country="AT").read("persons").to_pandas()
census = ds.Population(persons=df, person_id="pid", geography=["nuts2"], of="person")
cube = ds.Cube("nuts2", "sex", "cas")
secret = ds.Secret.new()

# %% [markdown]
# A guarantee depends on whose attribute a variable is: `of="person"` states that a change of one person leaves the
# place, sex and activity of all others as they are.

# %%
folder = TemporaryDirectory()
ledger = ds.open_ledger(Path(folder.name) / "budget.sqlite", secret)
ledger.create_account("census", ds.Rho(Fraction(1)), ds.Neighbours.ADD_REMOVE, "person")
table = ds.protect(
    census, cube, ds.DiscreteGaussian(rho="1/2", delta=1e-6), secret=secret, ledger=ledger, account="census"
)
table

# %%
print(ledger.spent("census"), "spent,", ledger.remaining("census"), "left")

# %%
ds.protect(
    census, cube, ds.DiscreteGaussian(rho="1/2", delta=1e-6), secret=secret, ledger=ledger, account="census"
)
try:
    ds.protect(
        census,
        cube,
        ds.DiscreteGaussian(rho="1/2", delta=1e-6),
        secret=secret,
        ledger=ledger,
        account="census",
    )
except ds.DiscreetError as refused:
    print(refused)

# %% [markdown]
# What the releases amount to together.

# %%
print(ds.accounting([ds.Rho(Fraction(1, 2))] * 2, delta=1e-6).summary())

# %%
print(ds.convert(rho=1, delta=1e-6).summary())

# %% [markdown]
# Every release with a guarantee has a certificate that recomputes it.

# %%
print(ds.verify(table, certificate=True).summary())

# %%
geometric = ds.protect(census, cube, ds.Geometric(epsilon=2), secret=secret)
truncated = ds.Private("laplace", {"epsilon": 2, "bound": 60, "delta": 1e-6})
laplace = ds.protect(census, cube, truncated, secret=secret)
geometric.value(), laplace.value()

# %% [markdown]
# Losses of different kinds together: a pure epsilon, one with a delta, and the noise of single cross-tabulations.

# %%
together = ds.accounting(
    [
        ds.PureEpsilon(1),
        ds.EpsilonDelta(1, Fraction(1, 10**9)),
        ds.LaplaceNoise(Fraction(1, 10)),
        ds.GaussianNoise(Fraction(1, 40)),
    ],
    delta=1e-6,
)
print(together.summary())

# %% [markdown]
# Tables with noise in every cell do not add up. A hierarchical release measures noisy marginals at every level of the
# geography, and fits tables that do; each count also has an estimate with its standard error. `strategy` states what is
# measured, and what share of the budget each level and each query has.

# %%
places = ds.Population(persons=df, person_id="pid", geography=["nuts1", "nuts2"], of="person")
strategy = {
    "histogram": ["sex", "cas"],
    "levels": {"total": "1/5", "nuts1": "2/5", "nuts2": "2/5"},
    "queries": {"total": "1/4", "sex": "1/4", "detailed": "1/2"},
}
hierarchical = ds.Hierarchical(geography="nuts2", rho="1/2", delta=1e-6, strategy=strategy)
added = ds.protect(places, ds.Cube("nuts2", "sex", "cas"), hierarchical, secret=secret)
by_sex = added.sel(cas="_T", nuts2=["_T", "AT1", "AT2", "AT3"])
assert by_sex.value(sex="1") + by_sex.value(sex="2") == by_sex.value()
by_sex.wide()

# %%
by_sex.interval().head()

# %% [markdown]
# Estimates of an area and of a larger one share noise: differences and shares allow for it.

# %%
print(ds.inference.estimated_difference(added, where={"nuts2": "AT1"}, other_where={"nuts2": "AT2"}).sentence)
print(
    ds.inference.estimated_proportion(
        added, where={"nuts2": "AT1", "sex": "2"}, whole_where={"nuts2": "AT1"}
    ).sentence
)

# %%
folder.cleanup()
