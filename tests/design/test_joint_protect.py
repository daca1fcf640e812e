"""Several outputs as one process, from protect to the file: what is released, what is sensitive, and by what name."""

from __future__ import annotations

import dataclasses
import warnings

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import MemoryInputs, Outputs, stacked_outputs
from sfumato.errors import FormatError
from sfumato.regions import OutputRegion, region_from_tree
from sfumato.release.release import Release

T = np.linspace(0.0, 3.0, 25)
X = pd.DataFrame({"t": T})
REGION = sf.Box(1.0, 2.0)
PRIOR = sf.Prior(rbf(0.4), noise=0.01)
MEAN_OF = np.linspace(1.0, 2.0, 6)[:, None]
JOINT = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "v": sf.Derivative("t"), "m": sf.Average(MEAN_OF)}, noise={"v": 0.05})


def k(a, b, first="r", second="r", lengthscale=0.4):
    """The joint covariance, written from the formulas."""
    if first == "m":
        return np.mean([k(z, b, "r", second) for z in MEAN_OF], axis=0)
    if second == "m":
        return np.mean([k(a, z, first, "r") for z in MEAN_OF], axis=0)
    gap = np.reshape(a, (-1, 1)) - np.reshape(b, (1, -1))
    value = np.exp(-(gap**2) / (2 * lengthscale**2))
    if (first, second) == ("v", "r"):
        return -gap / lengthscale**2 * value
    if (first, second) == ("r", "v"):
        return gap / lengthscale**2 * value
    if (first, second) == ("v", "v"):
        return (1 / lengthscale**2 - gap**2 / lengthscale**4) * value
    return value


def covariance_of_rows(released=("r", "v")):
    blocks = [[k(T, T, a, b) for b in released] for a in released]
    return np.block(blocks) + np.diag(np.repeat([{"r": 0.01, "v": 0.05}[name] for name in released], len(T)))


def left(mechanism, output, at, released=("r", "v")):
    """The posterior variance of ``output`` for the reader of ``mechanism``, by brute force."""
    M = covariance_of_rows(released) + mechanism.noise.covariance()
    cross = np.vstack([k(T, at, name, output) for name in released])
    return np.diag(k(at, at, output, output)) - np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross))


@pytest.fixture(scope="module")
def both():
    return sf.protect(JOINT, X, {"r": REGION, "v": REGION}, alpha=0.2)


def test_both_outputs_keep_their_floors_by_brute_force(both):
    at = np.linspace(1.0, 2.0, 101)
    assert both.certificate.holds
    assert np.min(left(both, "r", at)) >= 0.8 * (1 - 1e-9)
    assert np.min(left(both, "v", at)) >= 0.8 / 0.16 * (1 - 1e-9)
    assert both.certificate.outputs == ("r", "v", "m")


def test_a_velocity_is_protected_when_only_positions_are_published():
    mechanism = sf.protect(JOINT, X, {"v": REGION}, alpha=0.3, released=["r"])
    at = np.linspace(1.0, 2.0, 101)
    assert np.min(left(mechanism, "v", at, ("r",))) >= 0.7 / 0.16 * (1 - 1e-9)
    # positions themselves were not asked for
    assert np.min(left(mechanism, "r", at, ("r",))) < 0.5
    assert len(mechanism.inputs) == len(T)


def test_a_mean_over_a_district_is_protected_that_is_never_released():
    mechanism = sf.protect(JOINT, X, {"m": None}, alpha=0.1, released="r")
    variance = float(k(MEAN_OF[:1], MEAN_OF[:1], "m", "m")[0, 0])
    assert left(mechanism, "m", np.zeros(1), ("r",))[0] == pytest.approx(0.9 * variance, rel=1e-6)
    release = mechanism.release({"r": np.sin(T)})
    assert release.predict(None, output="m").std[0] == pytest.approx(np.sqrt(0.9 * variance), rel=1e-4)
    assert mechanism.certificate.sensitive == 1
    assert "m: 1 point" in mechanism.certificate.promise


def test_a_released_average_is_one_row():
    mechanism = sf.protect(JOINT, {"r": X, "m": None}, {"r": REGION}, alpha=0.3)
    assert len(mechanism.inputs) == len(T) + 1
    release = mechanism.release({"r": np.sin(T), "m": [0.3]})
    assert release.rows_of("m")[1].shape == (1,)
    assert release.predict(X.iloc[:2], output="r").mean.shape == (2,)


def test_outputs_may_be_seen_at_inputs_of_their_own():
    rows = {"r": X, "v": X.iloc[::3]}
    mechanism = sf.protect(JOINT, rows, {"r": REGION}, alpha=0.3)
    assert len(mechanism.inputs) == len(T) + 9
    y = {"r": np.sin(T), "v": np.cos(T[::3])}
    assert np.array_equal(stacked_outputs(mechanism.design.inputs, y), np.concatenate([y["r"], y["v"]]))


def test_a_region_for_all_is_for_every_function_of_the_inputs():
    mechanism = sf.protect(JOINT, X, REGION, alpha=0.3)
    assert isinstance(mechanism.region, OutputRegion)
    assert mechanism.region.sensitive == (0, 1)


def test_each_output_has_its_own_alpha_or_floor():
    mechanism = sf.protect(JOINT, X, {"r": REGION, "v": REGION}, alpha={"r": 0.2, "v": 0.6})
    at = np.linspace(1.0, 2.0, 51)
    assert np.min(left(mechanism, "r", at)) >= 0.8 * (1 - 1e-9)
    assert np.min(left(mechanism, "v", at)) >= 0.4 / 0.16 * (1 - 1e-9)
    floors = sf.protect(JOINT, X, {"r": REGION, "v": REGION}, floor={"r": 0.6, "v": 1.5})
    assert np.min(left(floors, "r", at)) >= 0.36 * (1 - 1e-9)
    assert np.min(left(floors, "v", at)) >= 2.25 * (1 - 1e-9)
    assert "r: readers keep a standard deviation of at least 0.6" in floors.certificate.promise


@pytest.mark.parametrize(
    "how",
    [
        {"guarantee": "pointwise"},
        {"structure": "diagonal"},
        {"cover": "rows"},
        {"cover": "exchange"},
        {"priors": [sf.JointPrior.of(sf.Prior(rbf(0.5), noise=0.01), {"r": sf.Value(), "v": sf.Derivative("t")})]},
    ],
    ids=lambda how: str(next(iter(how))) + str(next(iter(how.values())))[:8],
)
def test_every_program_takes_several_outputs(how):
    joint = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "v": sf.Derivative("t")}, noise={"v": 0.05})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        mechanism = sf.protect(joint, X, {"r": REGION}, alpha=0.3, **how)
    assert mechanism.certificate.holds
    at = T[(T >= 1) & (T <= 2)]
    assert np.min(left(mechanism, "r", at)) >= 0.7 * (1 - 1e-9)


def test_everywhere_protects_all_quantities():
    mechanism = sf.protect(JOINT, X, sf.Everywhere(), alpha=0.5)
    at = np.linspace(-1.0, 4.0, 51)
    assert mechanism.certificate.holds
    assert np.min(left(mechanism, "r", at)) >= 0.5 * (1 - 1e-9)
    assert np.min(left(mechanism, "v", at)) >= 0.5 / 0.16 * (1 - 1e-9)
    assert left(mechanism, "m", np.zeros(1))[0] >= 0.5 * float(k(MEAN_OF[:1], MEAN_OF[:1], "m", "m")[0, 0]) * (1 - 1e-9)


def test_predictions_are_the_joint_posterior(both):
    y = {"r": np.sin(T), "v": np.cos(T)}
    release = both.release(y)
    at = np.array([0.33, 1.5])
    blur = covariance_of_rows() + both.noise.covariance() + np.diag(release.steps**2 / 12)
    cross = np.vstack([k(T, at, name, "v") for name in ("r", "v")])
    mean = cross.T @ np.linalg.solve(blur, np.asarray(release.outputs))
    seen = release.predict(at, output="v")
    assert seen.mean == pytest.approx(mean, rel=1e-6, abs=1e-8)
    assert seen.std**2 == pytest.approx(left(both, "v", at), rel=1e-4)
    assert seen.covariance().shape == (2, 2)


def test_y_may_be_a_dict_a_frame_a_matrix_or_a_vector(both):
    r, v = np.sin(T), np.cos(T)
    wanted = np.concatenate([r, v])
    for y in ({"r": r, "v": v}, pd.DataFrame({"other": r, "v": v, "r": r}), np.column_stack([r, v]), wanted):
        assert np.array_equal(stacked_outputs(both.design.inputs, y), wanted)


def test_a_file_carries_the_outputs(both, tmp_path):
    release = both.release({"r": np.sin(T), "v": np.cos(T)})
    release.save(tmp_path / "joint.sfumato")
    read = sf.load(tmp_path / "joint.sfumato")
    assert read.design.inputs.outputs.names == ("r", "v", "m")
    assert read.output_name == "r, v"
    assert read.resolution == release.resolution
    assert np.array_equal(read.outputs, release.outputs)
    assert read.certify(progress=False).holds
    for output in ("r", "v"):
        one, other = release.predict(T[:3], output=output), read.predict(T[:3], output=output)
        assert np.array_equal(one.mean, other.mean)
        assert np.array_equal(one.std, other.std)
    assert read.predict(None, output="m").std == pytest.approx(release.predict(None, output="m").std)
    assert list(read.to_frame())[-2:] == ["r", "v"]
    assert (tmp_path / "joint.sfumato").read_bytes() == saved_again(read, tmp_path)


def saved_again(release, folder):
    release.save(folder / "again.sfumato")
    return (folder / "again.sfumato").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output_names": None}, "several outputs|other outputs|outputs"),
        ({"output_names": ["r", "v"]}, "other outputs"),
        ({"output_names": ["r", "r", "m"]}, "outputs names 'r' twice"),
        ({"resolution": [0.1]}, "resolution has 1 entries"),
        ({"tolerance": {"kind": "outputs", "parts": [[0, {"kind": "table"}]]}}, "lacks 'outputs'"),
        ({"region": {"kind": "outputs", "parts": [[7, {"kind": "everywhere"}]]}}, "output 7"),
    ],
)
def test_damaged_outputs_are_refused(both, tmp_path, change, message):
    from sfumato.release import container

    release = both.release({"r": np.sin(T), "v": np.cos(T)})
    release.save(tmp_path / "joint.sfumato")
    path = tmp_path / "joint.sfumato"
    manifest, tensors = container.read_container(path, lambda version, manifest, shapes: manifest)
    path.write_bytes(container.container(manifest | change, tensors))
    with pytest.raises(FormatError, match=message):
        sf.load(path)


@pytest.mark.parametrize(
    ("arguments", "how", "message"),
    [
        ((X, {"w": REGION}), {}, "region is 'w'; choose one of 'r', 'v', 'm'"),
        ((X, {"m": REGION}), {}, "'m', which is one quantity and has no inputs"),
        ((X, {"r": None}), {}, "region has None for 'r'"),
        ((X, {"r": sf.Everywhere()}), {}, "bound it"),
        ((X, {}), {}, "give a region for all outputs"),
        ((X, {"r": REGION}), {"released": ["r", "r"]}, "name each output"),
        ((X, {"r": REGION}), {"released": ["q"]}, "released is 'q'"),
        (({"r": X}, {"r": REGION}), {"released": ["v"]}, "give the same, or leave it out"),
        (({"r": None}, {"r": REGION}), {}, "no inputs for 'r'"),
        (({}, {"r": REGION}), {}, "X is empty"),
        ((X, {"r": REGION}), {"alpha": {"v": 0.1}}, "alpha is 'v'; choose one of 'r'"),
        ((X, {"r": REGION, "v": REGION}), {"alpha": {"v": 0.1}}, "no value for 'r'"),
        ((X, {"r": REGION}), {"alpha": None, "floor": {"r": np.sin}}, "has a function"),
        ((X, {"r": REGION}), {"method": "compressed"}, "for one output"),
        ((X, {"r": REGION}), {"priors": [PRIOR]}, "priors has a Prior"),
        ((X, {"r": REGION}), {"priors": JOINT}, "priors is a JointPrior"),
    ],
)
def test_wrong_use_is_refused_in_words(arguments, how, message):
    with pytest.raises(sf.InputError, match=message):
        sf.protect(JOINT, *arguments, **{"alpha": 0.3, **how})


def test_a_plain_prior_has_one_output():
    with pytest.raises(sf.InputError, match="JointPrior"):
        sf.protect(PRIOR, X, {"r": REGION}, alpha=0.3)
    with pytest.raises(sf.InputError, match="JointPrior"):
        sf.protect(PRIOR, X, REGION, alpha=0.3, released=["r"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ({"r": np.sin(T)}, "no values of 'v'"),
        ({"r": np.sin(T), "v": np.cos(T), "m": [0.1]}, "'m', which is not released"),
        ({"r": np.sin(T), "v": np.cos(T[1:])}, r"y\['v'\] has 24 values"),
        (np.zeros(3), "y has 3 values, but X has 50 rows"),
    ],
)
def test_values_that_do_not_fit_are_refused(both, y, message):
    with pytest.raises(sf.InputError, match=message):
        both.release(y)


def test_predictions_need_a_name(both):
    release = both.release({"r": np.sin(T), "v": np.cos(T)})
    with pytest.raises(sf.InputError, match="output is missing"):
        release.predict(T)
    with pytest.raises(sf.InputError, match="choose one of"):
        release.predict(T, output="w")
    with pytest.raises(sf.InputError, match="X_new is missing"):
        release.predict(None, output="v")
    one = sf.protect(PRIOR, X, REGION, alpha=0.3).release(np.sin(T), output_name="r")
    with pytest.raises(sf.InputError, match="about 'r'"):
        one.predict(T, output="v")
    assert one.predict(T, output="r").mean.shape == T.shape


def test_outputs_protected_one_by_one_with_the_same_prior_are_warned_of():
    joint = sf.JointPrior.independent({"a": PRIOR, "b": PRIOR})
    with pytest.warns(sf.GuaranteeWarning, match="'a' and 'b' are protected one by one.*share a prior"):
        mechanism = sf.protect(joint, X, REGION, alpha=0.3)
    certificate = mechanism.certificate
    assert certificate.findings[0].code == "protected-one-by-one"
    # the promise to each alone holds, and yet neither is protected
    assert certificate.holds
    assert certificate.verdict == "do not publish"


def test_outputs_that_look_like_derivatives_are_warned_of():
    velocity = sf.Prior(rbf(0.3, 1 / 0.16), noise=0.01)
    joint = sf.JointPrior.independent({"r": PRIOR, "v": velocity})
    with pytest.warns(sf.GuaranteeWarning, match="looks like the derivative"):
        sf.protect(joint, X, REGION, alpha=0.3)


def test_unrelated_priors_are_not_warned_of():
    joint = sf.JointPrior.independent({"r": PRIOR, "v": sf.Prior(matern(2.0, 300.0), noise=0.01)})
    mechanism = sf.protect(joint, X, REGION, alpha=0.3)
    assert "protected-one-by-one" not in [one.code for one in mechanism.certificate.findings]


def test_the_owner_is_told_when_the_data_look_like_derivatives():
    joint = sf.JointPrior.independent({"r": PRIOR, "v": sf.Prior(matern(2.0, 300.0), noise=0.01)})
    mechanism, values = sf.protect(joint, X, REGION, alpha=0.3), {"r": np.sin(3 * T), "v": 3 * np.cos(3 * T)}
    with pytest.raises(sf.GuaranteeError, match=r"'v' looks like the derivative of 'r'.*--accept protected-one-by-one"):
        mechanism.release(values)
    accepted = sf.protect(joint, X, REGION, alpha=0.3, accept="protected-one-by-one")
    # what the data show is the owner's secret
    assert accepted.release(values).certificate.findings == mechanism.certificate.findings
    assert mechanism.certificate.verdict == "publish"
    for one, verdict in ((mechanism, "do not publish"), (accepted, "publish with care")):
        assert one.certificate.with_findings(*one.findings_on(values)).verdict == verdict
    others = mechanism.findings_on({"r": np.sin(3 * T), "v": np.cos(17 * T**2)})
    assert "protected-one-by-one" not in [one.code for one in others]


def test_related_outputs_are_not_warned_of(both):
    assert "protected-one-by-one" not in [one.code for one in both.certificate.findings]


def test_units_of_one_output_change_nothing_but_its_own_noise():
    small = sf.protect(_two(1.0), X, REGION, alpha=0.3)
    large = sf.protect(_two(2.0**23), X, REGION, alpha=0.3)
    assert small.certificate.holds
    assert large.certificate.holds
    scale = np.concatenate([np.ones(len(T)), np.full(len(T), 2.0**23)])
    assert large.noise.covariance() / np.outer(scale, scale) == pytest.approx(small.noise.covariance(), abs=1e-9)
    steps = large.release({"a": np.sin(T), "b": 2.0**23 * np.cos(3 * T)}).resolution
    assert 1e6 <= steps[1] / steps[0] <= 1e8


def _two(unit):
    B = [[1.0, 0.6 * unit], [0.6 * unit, unit**2]]
    return sf.JointPrior.coregionalised(sf.Prior(rbf(0.4)), B, ("a", "b"), noise={"a": 0.01, "b": 0.01 * unit**2})


def test_coregionalised_outputs_know_of_each_other():
    joint = sf.JointPrior.coregionalised(sf.Prior(rbf(0.4)), [[1.0, 0.9], [0.9, 1.0]], ("a", "b"))
    mechanism = sf.protect(joint, X, {"a": REGION}, alpha=0.2, released=["b"])
    # b tells of a, so b is blurred although a is never released
    assert mechanism.noise.trace > 1.0
    free = sf.JointPrior.independent({"a": sf.Prior(rbf(0.4)), "b": sf.Prior(rbf(0.4))})
    with pytest.warns(sf.GuaranteeWarning, match="protected one by one"):
        nothing = sf.protect(free, X, {"a": REGION}, alpha=0.2, released=["b"])
    assert nothing.noise.trace < 1e-6


def test_gpytorchs_multitask_kernel_is_taken_over():
    kernel = gpytorch.kernels.MultitaskKernel(gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1).double()
    kernel.data_covar_module.lengthscale = 0.4
    joint = sf.JointPrior.from_multitask(kernel, ("a", "b"), noise=0.01)
    mechanism = sf.protect(joint, X, REGION, alpha=0.4)
    assert mechanism.certificate.holds


def test_two_inputs_and_a_partial_derivative():
    axis = np.linspace(0.0, 2.0, 5)
    grid = pd.DataFrame(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2), columns=["u", "w"])
    prior = sf.Prior(rbf([0.8, 1.0]), noise=0.05)
    joint = sf.JointPrior.of(prior, {"f": sf.Value(), "slope": sf.Derivative("w")})
    region = sf.Box({"u": (0.5, 1.0), "w": (0.5, 1.0)})
    mechanism = sf.protect(joint, grid, {"slope": region}, alpha=0.4, released=["f"])
    assert mechanism.certificate.holds
    assert mechanism.certificate.columns == ("u", "w", "output")


def test_a_column_called_output_does_not_collide():
    frame = pd.DataFrame({"output": T})
    joint = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "v": sf.Derivative("output")})
    mechanism = sf.protect(joint, frame, {"r": REGION}, alpha=0.3, released=["r"])
    assert mechanism.design.inputs.names == ("output", "output_")


def test_a_region_of_outputs_can_be_written_and_read():
    inputs = MemoryInputs(np.column_stack([T, np.zeros(len(T))]), ("t", "output"), Outputs.several(["r", "v"]))
    region = OutputRegion({1: sf.Box(1.0, 2.0), 0: sf.Points([[0.5]])}).bind(inputs)
    again = region_from_tree(region.to_tree()).bind(inputs)
    assert again == region
    assert region.in_words(inputs.names) == "r: 1 point; v: 1 ≤ t ≤ 2"
    inside = region.contains(np.array([[0.5, 0.0], [0.5, 1.0], [1.5, 1.0], [1.5, 0.0]]))
    assert inside.tolist() == [True, False, True, False]
    points = region.probes(100, inputs)
    assert np.all(region.contains(points))
    assert np.all(region.contains(region.project(points + np.array([[0.3, 0.0]]), inputs)))
    assert set(region.project_into_parts(inputs.values[:2], inputs)[:, -1]) == {0.0, 1.0}
    assert not region.varying_columns(2)[-1]


def test_a_release_with_too_few_resolutions_is_refused(both):
    release = both.release({"r": np.sin(T), "v": np.cos(T)})
    with pytest.raises(sf.InputError, match="one for each output"):
        dataclasses.replace(release, resolution=(0.1,))
    given = both.release({"r": np.sin(T), "v": np.cos(T)}, resolution={"r": 0.001, "v": 0.01})
    assert given.resolution[:2] == (0.001, 0.01)
    assert isinstance(given, Release)


def test_a_weaker_promise_about_one_output_never_costs_more_noise():
    strict = sf.protect(JOINT, X, {"r": REGION, "v": REGION}, alpha=0.3)
    weaker = sf.protect(JOINT, X, {"r": REGION, "v": REGION}, alpha={"r": 0.5, "v": 0.3})
    weights = np.repeat([1.0, 0.16], len(T))
    assert weights @ weaker.noise.variance() <= 1.01 * (weights @ strict.noise.variance())
    # the mean is held ten times as tight as the values it is made of
    mean = sf.protect(JOINT, X, {"r": REGION, "m": None}, alpha={"r": 0.5, "m": 0.05}, released=["r"])
    assert mean.certificate.holds
    variance = float(k(MEAN_OF[:1], MEAN_OF[:1], "m", "m")[0, 0])
    assert left(mean, "m", np.zeros(1), ("r",))[0] >= 0.95 * variance * (1 - 1e-9)


def test_the_tolerance_by_output_is_a_covariance_with_the_asked_diagonal():
    from sfumato.promise.tolerance import FractionTolerance, OutputTolerance

    prior = JOINT.prior_on(("t",))
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(0, 3, 30), rng.integers(0, 3, 30)])
    parts = tuple((number, FractionTolerance(alpha)) for number, alpha in enumerate((0.5, 0.2, 0.05)))
    tolerance = OutputTolerance.of(parts, prior, points)
    delta, kernel = tolerance.matrix(prior, points), prior.covariance(points)
    assert np.diag(delta) == pytest.approx(tolerance.budget(prior, points), rel=1e-12)
    assert tolerance.common == pytest.approx(0.05)
    scale = np.sqrt(np.diag(kernel))
    excess = (delta - 0.05 * kernel) / np.outer(scale, scale)
    assert np.linalg.eigvalsh(excess)[0] >= -1e-12


def test_the_rows_cover_protects_outputs_that_are_never_released():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        mechanism = sf.protect(JOINT, X, {"v": REGION, "m": None}, alpha=0.3, released=["r"], cover="rows")
    at = T[(T >= 1) & (T <= 2)]
    assert np.min(left(mechanism, "v", at, ("r",))) >= 0.7 / 0.16 * (1 - 1e-9)
    variance = float(k(MEAN_OF[:1], MEAN_OF[:1], "m", "m")[0, 0])
    assert left(mechanism, "m", np.zeros(1), ("r",))[0] >= 0.7 * variance * (1 - 1e-9)
