# %% [markdown]
# # A first protected table
#
# From a data frame to a table that may be published. The records here are synthetic; use your own data frame instead.

# %%
import discreet as ds

df = ds.synth(2_000, country="AT").read("persons").to_pandas()
df[["pid", "hid", "nuts1", "nuts2", "sex", "lms"]].head()

# %% [markdown]
# A population is the records and what their columns mean. It shows no counts: records are confidential. Codes are the
# distinct values of a column; `geography` names columns that nest, coarse to fine.

# %%
census = ds.Population(
    persons=df, person_id="pid", geography=["nuts1", "nuts2"], labels={"lms": "Marital status"}
)
census

# %%
cube = ds.Cube("nuts2", "sex", "lms", title="Persons by place, sex and marital status")
noise = ds.CellKey(V=2, D=5)
ds.check(census, cube, noise)

# %% [markdown]
# The secret decides the noise. The same records, noise and secret always give the same table, here and on the command
# line, so store it safely.

# %%
secret = ds.Secret.new()
table = ds.protect(census, cube, noise, secret=secret)
table

# %%
table.sel(nuts2="_T").wide(columns="sex")

# %%
table.to_pandas(labels=True).head()

# %% [markdown]
# Every count has noise, totals too. An interval shows where the true count is.

# %%
table.sel(lms="_T").interval(level=0.95).head()

# %%
table.sel(nuts2="_T").chart()

# %% [markdown]
# The same declaration as a programme file with its codelists, for the command line.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    path = census.programme(cube, noise).to_toml(Path(folder) / "declared")
    again = ds.protect(ds.load_programme(path), secret=secret)
    assert again[table.id].to_arrow().equals(table.to_arrow())
    stored = secret.save(Path(folder) / "secret.key")
    ds.protect(census, [cube], noise, secret=stored, out=Path(folder) / "release")
    assert ds.verify(Path(folder) / "release").passed
    assert ds.open_release(Path(folder) / "release")[table.id].to_arrow().equals(table.to_arrow())
