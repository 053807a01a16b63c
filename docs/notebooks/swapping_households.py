# %% [markdown]
# # Swapping households
#
# Before anything is counted, households that are easily recognised exchange their places with similar ones elsewhere.

# %%
import discreet as ds

df = ds.synth(2_000, country="AT").read("persons").to_pandas()
census = ds.Population(persons=df, person_id="pid", household_id="hid", geography=["nuts1", "nuts2", "nuts3"])
rule = ds.Swap(risk=["sex", "lms"], similar=[["hhsize", "hhtype"], ["hhsize"]], rate=0.02)
secret = ds.Secret.new()

# %% [markdown]
# The figures are for the office only: risk before and after, how far households moved, which tables changed.

# %%
swapped = ds.swap(census, rule, secret=secret)
print(swapped.summary())
swapped

# %%
swapped.chart()

# %%
swapped.population

# %% [markdown]
# To publish, give the rule to `protect`: the same secret swaps the same households, and noise is added to their counts.

# %%
cube = ds.Cube("nuts3", "sex", "lms")
table = ds.protect(census, cube, ds.CellKey(V=2, D=5), secret=secret, swap=rule)
table.sel(lms="_T").wide()

# %% [markdown]
# Counts of the whole country are the same as without swapping: no household left it.

# %%
plain = ds.protect(census, cube, ds.CellKey(V=2, D=5), secret=secret)
assert plain.sel(nuts3="_T").to_arrow().equals(table.sel(nuts3="_T").to_arrow())
print(ds.utility(table, census).summary())
