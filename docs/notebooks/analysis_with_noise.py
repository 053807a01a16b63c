# %% [markdown]
# # A data user's analysis with noise
#
# Published counts have noise. Tests and intervals that ignore it are wrong for small counts; those below allow for it,
# with only what the release publishes.

# %%
import discreet as ds

df = ds.synth(2_000, country="AT").read("persons").to_pandas()
census = ds.Population(
    persons=df, person_id="pid", geography=["nuts1"], codelists={"sex": {"1": "Men", "2": "Women"}}
)
release = ds.protect(
    census,
    [ds.Cube("nuts1", "sex", "lms", id="3.1")],
    ds.CellKey(V=2, D=5),
    secret=ds.Secret.new(),
    disclose="law",
)

# %% [markdown]
# From here on only the published table is used.

# %%
table = release["3.1"]
women = table.sel(sex="2", nuts1="_T")
women.to_pandas()

# %%
noise = table.noise()
print(ds.inference.interval(table.value(sex="2"), noise).sentence)

# %%
counts = table.finest("sex", "lms").to_numpy()
print(ds.inference.independence(counts, noise, simulations=199).sentence)

# %%
print(ds.inference.difference(table.value(sex="2"), table.value(sex="1"), noise).sentence)

# %%
print(ds.inference.ratio(table.value(sex="2"), table.value(sex="1"), noise).sentence)

# %% [markdown]
# A share in a total that contains it: both have noise, and the noise of the part is not in the total.

# %%
print(ds.inference.proportion(table.value(sex="2"), table.value(), noise).sentence)

# %%
wide = table.finest("nuts1", "sex").wide()
(wide / wide.sum()).round(3)

# %%
table.interval(level=0.9).query("nuts1 != '_T' and sex != '_T' and lms == '_T'").head()
