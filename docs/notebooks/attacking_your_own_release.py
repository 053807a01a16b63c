# %% [markdown]
# # Attacking your own release
#
# First as an outsider who has only the published files, then as an auditor who also has the records.

# %%
import discreet as ds

df = ds.synth(2_000).read("persons").to_pandas()
census = ds.Population(persons=df, person_id="pid", geography=["nuts3"])
cubes = [ds.Cube("nuts3", "sex", "lms"), ds.Cube("nuts3", "sex", "cas"), ds.Cube("nuts3", "lms")]
release = ds.protect(census, cubes, ds.CellKey(V=2, D=5), secret=ds.Secret.new())
release

# %%
outsider = ds.attack(release, ptable=ds.ptable(V=2, D=5), without=["reconstruction"])
print(outsider.summary())

# %%
outsider.to_pandas().head(12)

# %% [markdown]
# The audit counts the records again and reports how often the attacks are right.

# %%
slow = ["reconstruction", "region", "disclosure"]
report = ds.audit(release, census, without=slow)
report.averaging.recovered, report.averaging.share

# %%
report.averaging.chart()

# %% [markdown]
# Weak noise is removed by averages. Protection that is too weak is refused unless `allow_weak` accepts it.

# %%
try:
    ds.protect(census, cubes, ds.CellKey(V=0.1, D=1), secret=ds.Secret.new())
except ds.DiscreetError as refused:
    print(refused)

# %%
weak = ds.protect(census, cubes, ds.CellKey(V=0.1, D=1, allow_weak=True), secret=ds.Secret.new())
weaker = ds.audit(weak, census, without=slow)
assert weaker.averaging.share > report.averaging.share
weaker.averaging.share
