"""Claims about where the noise comes from. Statistical checks use fixed keys, so they cannot fail by bad luck."""

from __future__ import annotations

import copy
import pickle
import random
import tracemalloc

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.noise.entropy import SecretKey, default_resolution, finest_resolution, round_outputs

KEY = SecretKey.from_unsafe_seed(1)
# Each statistical check would reject a perfect generator with at most this probability, were the key fresh.
ERROR = 1e-6


def test_normals_follow_the_normal_distribution() -> None:
    drawn = KEY.normals(b"distribution", 400_000)
    assert scipy.stats.kstest(drawn, "norm").pvalue > ERROR
    assert scipy.stats.kstest(np.abs(drawn), "halfnorm").pvalue > ERROR


def test_fresh_keys_give_normals_too() -> None:
    drawn = np.concatenate([SecretKey.fresh().normals(b"", 1000) for _ in range(50)])
    assert scipy.stats.kstest(drawn, "norm").pvalue > 1e-9


def test_moments_are_those_of_a_normal() -> None:
    drawn = KEY.normals(b"moments", 1_000_000)
    limit = scipy.stats.norm.isf(ERROR / 2)
    # The moments' own standard errors: var(x)=1, var(x²)=2, var(x³)=15, var(x⁴)=96.
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(drawn**power) - expected) < limit * np.sqrt(variance / drawn.size)


def test_tails_are_as_heavy_as_they_should_be() -> None:
    drawn = KEY.normals(b"tails", 2_000_000)
    for threshold in (2.0, 3.0, 4.0):
        for side in (drawn, -drawn):
            seen = int(np.sum(side > threshold))
            assert scipy.stats.binomtest(seen, drawn.size, scipy.stats.norm.sf(threshold)).pvalue > ERROR


def test_extreme_words_give_finite_symmetric_normals() -> None:
    from sfumato.noise.entropy import _normals_from

    words = np.array([0, 1, 2**64 - 2, 2**64 - 1], dtype="<u8")
    drawn = _normals_from(words.tobytes())
    assert np.all(np.isfinite(drawn))
    assert drawn[0] == -drawn[1]
    assert drawn[2] == -drawn[3]
    assert 9.0 < abs(drawn[0]) < 10.0
    assert abs(drawn[2]) < 1e-15


def test_neighbours_chunks_messages_and_keys_are_uncorrelated() -> None:
    count = 300_000
    drawn = KEY.normals(b"a", count)
    limit = scipy.stats.norm.isf(ERROR / 2) / np.sqrt(count - (1 << 16))
    others = [KEY.normals(b"b", count), KEY.normals(b"a\x00", count), KEY.normals(b"", count)]
    others += [SecretKey.from_unsafe_seed(seed).normals(b"a", count) for seed in (0, 2, -1)]
    for other in others:
        assert abs(np.corrcoef(drawn, other)[0, 1]) < limit
        assert not np.any(drawn == other)
    for lag in (1, 2, 8, 1 << 16):
        assert abs(np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]) < limit
        assert abs(np.corrcoef(drawn[:-lag] ** 2, drawn[lag:] ** 2)[0, 1]) < limit


def test_normals_are_a_pure_function_of_key_and_message() -> None:
    again = SecretKey.from_unsafe_seed(1)
    np.testing.assert_array_equal(KEY.normals(b"m", 70_000), again.normals(b"m", 70_000))
    np.testing.assert_array_equal(KEY.normals(b"m", 70_000)[:10], KEY.normals(b"m", 10))
    assert KEY.normals(b"m", 0).shape == (0,)


def test_fresh_keys_differ() -> None:
    assert SecretKey.fresh().normals(b"m", 1)[0] != SecretKey.fresh().normals(b"m", 1)[0]


def test_global_random_states_have_no_influence_and_are_left_alone() -> None:
    np.random.seed(3)  # noqa: NPY002  the global generator is what is tested
    torch.manual_seed(3)
    random.seed(3)
    before = (np.random.get_state()[1].copy(), torch.random.get_rng_state(), random.getstate())  # noqa: NPY002
    first = KEY.normals(b"state", 1000)
    assert np.array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.random.get_rng_state())
    assert before[2] == random.getstate()
    np.random.seed(4)  # noqa: NPY002
    torch.manual_seed(4)
    np.testing.assert_array_equal(first, KEY.normals(b"state", 1000))


def test_many_normals_take_little_more_memory_than_their_array() -> None:
    tracemalloc.start()
    KEY.normals(b"memory", 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000 * 8 + 8 * 8 * (1 << 16)


def test_a_key_is_never_shown_compared_or_pickled() -> None:
    key = SecretKey(b"\x07" * 32)
    for text in (repr(key), str(key), f"{key}", f"{[key]}"):
        assert text.strip("[]") == "<secret key>"
    assert key != SecretKey(b"\x07" * 32)
    assert not hasattr(key, "__dict__")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(key, protocol)
    assert copy.copy(key) is key
    assert copy.deepcopy([key])[0] is key


def test_a_bad_key_is_refused_without_being_shown() -> None:
    with pytest.raises(InputError) as raised:
        SecretKey(b"hunter2")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("seed", [1.5, "1", None, True])
def test_an_unsafe_seed_is_an_integer(seed: object) -> None:
    with pytest.raises(InputError, match="unsafe_seed"):
        SecretKey.from_unsafe_seed(seed)  # type: ignore[arg-type]


@given(st.floats(-1e6, 1e6), st.integers(-8, 3), st.sampled_from([1, 2, 5, 25]))
def test_rounding_gives_the_double_closest_to_a_near_multiple(value: float, power: int, digit: int) -> None:
    resolution = float(f"{digit}e{power}")
    rounded = float(round_outputs(np.array([value]), resolution)[0])
    assert abs(rounded - value) <= resolution * 0.5000001 + 1e-9 * abs(value)
    units = round(rounded / resolution) * digit
    assert rounded == float(f"{units}e{power}")


def test_rounded_numbers_print_short() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    for power in (-12, -6, -1):
        longest = max(len(repr(float(v)).lstrip("-")) for v in round_outputs(values, float(f"1e{power}")))
        assert longest <= 2 - power or power == -12
    tiny = round_outputs(np.array([1.23456e-25]), 1e-27)
    assert tiny[0] == 1.23e-25
    assert not np.signbit(round_outputs(np.array([-1e-9]), 0.1))[0]
    assert round_outputs(np.array([1234567.0]), 1000.0)[0] == 1235000.0


@pytest.mark.parametrize("resolution", [0.0, -1.0, np.nan, np.inf, "1", None, True, 1e-320, 1e200])
def test_a_resolution_is_a_positive_finite_number(resolution: object) -> None:
    with pytest.raises(InputError, match="resolution"):
        round_outputs(np.ones(2), resolution)  # type: ignore[arg-type]


@given(st.floats(-30, 30), st.floats(-30, 30), st.floats(-30, 30))
def test_the_default_resolution_lies_between_last_bits_and_noise(noise: float, std: float, mean: float) -> None:
    blur, deviation, scale = 10.0**noise, 10.0**std, 10.0**mean
    finest = finest_resolution(deviation, scale, 100 * blur)
    resolution = default_resolution(blur, deviation, finest)
    # values up to 4096 standard deviations away and 10σ of the noisiest row are at most 2⁴² steps
    assert 2.0**-52 * (scale + 4096 * deviation + 1000 * blur) <= 2.0**-10 * resolution * 1.001
    assert 1e-7 * blur * 0.999 <= resolution <= max(1e-6 * blur * 1.001, 10 * finest)
    assert float(f"{resolution:.0e}") == resolution


def test_without_noise_the_default_resolution_follows_the_prior() -> None:
    for std, mean, expected in ((1.0, 0.0, 1e-9), (1.0, 1e9, 1e-4)):
        assert default_resolution(0.0, std, finest_resolution(std, mean)) == expected
    assert default_resolution(0.0, 0.0, 0.0) > 0
