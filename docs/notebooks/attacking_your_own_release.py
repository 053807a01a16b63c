# %% [markdown]
# # Attacking your own release
#
# First as an outsider who has only the published files, then as an auditor who also has the records.

# %%
import discreet as ds

df = ds.synth(2_000, country="AT").read("persons").to_pandas()
census = ds.Population(persons=df, person_id="pid", geography=["nuts2"])
cubes = [ds.Cube("nuts2", "sex", "lms"), ds.Cube("nuts2", "sex", "cas"), ds.Cube("nuts2", "lms")]
release = ds.protect(census, cubes, ds.CellKey(V=2, D=5), secret=ds.Secret.new())
release

# %%
outsider = ds.attack(release, ptable=ds.ptable(V=2, D=5), without=["reconstruction"])
print(outsider.summary())

# %%
figures = outsider.to_pandas()
figures[figures["figure"].str.endswith("expected")]

# %% [markdown]
# The audit counts the records again and reports how often the attacks are right.

# %%
slow = ["reconstruction", "region", "disclosure"]
report = ds.audit(release, census, without=slow)
report

# %% [markdown]
# Every measure is an attribute; `ds.types` has the types of all results, for annotations.


# %%
def recovered(found: ds.types.AveragingAudit) -> str:
    return f"{found.recovered} counts, {found.share:.1%}"


recovered(report.averaging.found)

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
