"""Hide one orbit of a real satellite, its height and its rate of climb together.

python docs/tutorials/orbits.py [FOLDER]     writes orbits.png and vanguard.sfumato
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sfumato as sf
from sfumato.plots import plot_floor, plot_release

try:
    import sgp4
    from sgp4.api import Satrec
except ImportError:
    raise SystemExit("This tutorial needs the package sgp4: pip install 'sfumato[data]'") from None

out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
out.mkdir(parents=True, exist_ok=True)

# Vanguard 1, the oldest satellite in orbit: the first elements of the file that sgp4 verifies itself with.
lines = (Path(sgp4.__file__).parent / "SGP4-VER.TLE").read_text().splitlines()
number = next(i for i, line in enumerate(lines) if line.startswith("1 00005U"))
vanguard = Satrec.twoline2rv(lines[number][:69], lines[number + 1][:69])

period = 2 * np.pi / vanguard.no_kozai  # minutes
t = np.linspace(0, 3 * period, 91)
start = np.full(t.size, vanguard.jdsatepoch)
errors, position, velocity = vanguard.sgp4_array(start, vanguard.jdsatepochF + t / 1440)
assert not errors.any()
radius = np.linalg.norm(position, axis=1)  # km from the centre of the Earth
rate = 60 * np.sum(position * velocity, axis=1) / radius  # km a minute
print(f"one orbit takes {period:.1f} minutes, between {radius.min():.0f} and {radius.max():.0f} km")

region = sf.Box(133, 266)  # the second orbit
# We claim little about orbits: they change within a sixth of a period. Measurement errors are about a kilometre.
prior = sf.fit_prior(t, radius, kernel="matern52", lengthscale=period / 6, noise=1.0, exclude=region)
joint = sf.JointPrior.of(prior, {"radius": sf.Value(), "rate": sf.Derivative()}, noise={"rate": 0.01})

mechanism = sf.protect(joint, t, region, floor={"radius": 200.0, "rate": 10.0})  # km, km a minute
promise = mechanism.certificate
print(f"promise kept: {promise.holds}, the least std is {promise.floor_ratio:.4f} times its floor")
print(f"share of the noise outside the region: {promise.spill:.2f}")

release = mechanism.release({"radius": radius, "rate": rate})
release.save(out / "vanguard.sfumato")

reader = sf.load(out / "vanguard.sfumato")  # from here on only what is public
for output in ("radius", "rate"):
    inside = reader.predict(np.linspace(133, 266, 101), output=output).std
    outside = reader.predict(np.linspace(0, 0.8 * period, 101), output=output).std
    print(f"{output}: readers know it to ±{inside.min():.1f} in the region, to ±{np.median(outside):.2f} before it")

hidden = (t >= 133) & (t <= 266)
seen = reader.predict(t[hidden], output="radius")
print(f"this draw: a reader is off by {np.sqrt(np.mean((seen.mean - radius[hidden]) ** 2)):.0f} km in the region")
before = reader.predict(t[hidden] - period, output="radius")
repeats = np.sqrt(np.mean((before.mean - radius[hidden]) ** 2))
print(f"this draw: one who knows that orbits repeat is off by {repeats:.0f} km")

figure, axes = plt.subplots(3, 1, figsize=(8, 7.6), sharex=True)
plot_release(reader, (t, radius), axes[0], "radius, km", of="radius")
plot_release(reader, (t, rate), axes[1], "rate, km a minute", of="rate")
plot_floor(reader, axes[2], "std of the radius, km", of="radius")
for axis, title in zip(axes, ("", "", "minutes"), strict=True):
    handles, labels = (part[1:5] for part in axis.get_legend_handles_labels())  # without the region
    axis.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8, frameon=False)
    axis.set_xlabel(title)
axes[1].get_legend().remove()
figure.tight_layout()
figure.savefig(out / "orbits.png", dpi=90)
