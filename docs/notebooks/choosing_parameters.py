# %% [markdown]
# # Choosing parameters
#
# What a variance V and a largest change D mean, what the adviser proposes for these tables, and what errors to expect.

# %%
import discreet as ds

df = ds.synth(2_000, country="AT").read("persons").to_pandas()
census = ds.Population(persons=df, person_id="pid", geography=["nuts1", "nuts2"])
cubes = [ds.Cube("nuts2", "sex", "lms"), ds.Cube("nuts2", "sex")]

# %% [markdown]
# A p-table has, for each true count, the probabilities of the changes.

# %%
ptable = ds.ptable(V=2, D=5, js=2)
ptable.chart()

# %%
print(ptable.summary())
{count: round(ptable.variance(count), 3) for count in range(ptable.last_row + 1)}

# %% [markdown]
# The adviser counts how often the tables repeat a statistic: repetition is what averaging uses.

# %%
advice = ds.advise(census, cubes, ds.CellKey(V=1, D=3), limits=ds.RiskLimits(uniques=0.8))
print(advice.summary())

# %%
print([chart.name for chart in advice.charts])
advice.chart()

# %% [markdown]
# A forecast compares the expected errors of this noise with noise that has a guarantee; nothing is counted. A guarantee
# depends on whose attribute a variable is.

# %%
whose = ds.Population(persons=df, person_id="pid", geography=["nuts1", "nuts2"], of="person")
forecast = ds.forecast(whose, cubes, ds.CellKey(V=2, D=5), epsilon=[1, 5])
print(forecast.summary())

# %% [markdown]
# After protecting: the errors that were realised, beside those that were expected. This result is confidential.

# %%
release = ds.protect(census, cubes, ds.CellKey(V=2, D=5), secret=ds.Secret.new())
print(ds.utility(release, census).summary())
