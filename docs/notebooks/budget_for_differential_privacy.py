# %% [markdown]
# # Differential privacy with a budget
#
# Noise with a guarantee, charged to an account that cannot be overdrawn.

# %%
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet as ds

df = ds.synth(2_000).read("persons").to_pandas()
census = ds.Population(persons=df, person_id="pid", geography=["nuts3"], of="person")
cube = ds.Cube("nuts3", "sex", "cas")
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

# %%
ds.accounting(
    [
        ds.PureEpsilon(1),
        ds.EpsilonDelta(1, Fraction(1, 10**9)),
        ds.LaplaceNoise(Fraction(1, 10)),
        ds.GaussianNoise(Fraction(1, 40)),
    ],
    delta=1e-6,
).epsilons

# %%
folder.cleanup()
