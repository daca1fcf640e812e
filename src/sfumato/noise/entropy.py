"""Where the randomness of a release comes from, and how finely its outputs are written down.

Noise that protects people is drawn from a 256-bit secret through a cryptographic stream, never from NumPy's or
torch's generators: these can be seeded, guessed and replayed.
"""

from __future__ import annotations

import hashlib
import math
import operator
import secrets
from decimal import Decimal
from typing import Any, NoReturn, final

import numpy as np
from scipy.special import ndtri

from ..arrays import Array
from ..errors import InputError

#: What the hashes begin with, so that they mean nothing anywhere else.
_DOMAIN = b"sfumato standard normals 1\x00"
_UNSAFE_DOMAIN = b"sfumato unsafe seed 1\x00"
_SEED_DOMAIN = b"sfumato derived seed 1\x00"
#: Normals are made this many at a time, which bounds the memory for their bytes (512 KiB).
_CHUNK = 1 << 16
_KEY_BYTES = 32
#: Published values have at most so many steps: doubles there are at most 2⁻¹⁰ of a step apart (docs/roundoff.md).
LARGEST_IN_STEPS = 2.0**42
#: The finest step leaves room for values that are so many standard deviations away from the prior's mean, and for noise
#: that is so many of its own.
_VALUES_REACH, _NOISE_REACH = 2.0**12, 10.0
#: Where there is no noise at all, values keep at least 8 of the 52 bits of a double to spare.
_FINEST_WITHOUT_NOISE = 2.0**-44


@final
class SecretKey:
    """256 secret bits, and the standard normals that follow from them.

    Guarantee: without the key, normals for one message are computationally indistinguishable from independent
    standard normals, also to someone who has seen those for other messages (SHAKE-256 keyed by prefix). The key is
    never printed, compared or pickled, and no global random state is read or changed.

    >>> from sfumato.noise.entropy import SecretKey
    >>> SecretKey.fresh()
    <secret key>
    """

    __slots__ = ("__raw",)

    def __init__(self, raw: bytes) -> None:
        if not isinstance(raw, bytes) or len(raw) != _KEY_BYTES:
            # The value is not shown: it may be most of a key.
            raise InputError(f"a secret key is made of {_KEY_BYTES} bytes; use SecretKey.fresh().")
        self.__raw = raw

    @classmethod
    def fresh(cls) -> SecretKey:
        """A new key from the operating system's secure source."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def from_unsafe_seed(cls, seed: int) -> SecretKey:
        """A key that anyone who knows ``seed`` can make again: for experiments, never for real people."""
        try:
            if isinstance(seed, bool):
                raise TypeError
            number = operator.index(seed)
        except TypeError:
            raise InputError(f"unsafe_seed is {seed!r}; give an integer.") from None
        return cls(hashlib.sha256(_UNSAFE_DOMAIN + str(number).encode()).digest())

    def normals(self, message: bytes, count: int) -> Array:
        """``count`` independent standard normals, a pure function of the key and ``message``."""
        if count < 0:
            raise InputError(f"count is {count}; ask for 0 or more normals.")
        stream = hashlib.shake_256(_DOMAIN + self.__raw + len(message).to_bytes(8, "little") + message)
        drawn = np.empty(count)
        for number, start in enumerate(range(0, count, _CHUNK)):
            part = stream.copy()
            part.update(number.to_bytes(8, "little"))
            size = min(_CHUNK, count - start)
            drawn[start : start + size] = _normals_from(part.digest(8 * size))
        return drawn

    def seed_for(self, message: bytes) -> bytes:
        """The bytes of another key, for workers who must not have this one; as secret as what is drawn with them."""
        return hashlib.shake_256(_SEED_DOMAIN + self.__raw + message).digest(_KEY_BYTES)

    def __repr__(self) -> str:
        return "<secret key>"

    def __copy__(self) -> SecretKey:
        return self

    def __deepcopy__(self, memo: Any) -> SecretKey:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a secret key is never pickled: whoever reads the pickle could take the noise off its releases")


def _normals_from(stream: bytes) -> Array:
    """One bit of sign and a 63-bit uniform in (0, ½) a normal: exactly symmetric, finite, fine tails to 9σ."""
    words = np.frombuffer(stream, dtype="<u8")
    lower = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
    return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * ndtri(lower), dtype=np.float64)


def round_outputs(values: Array, resolution: float) -> Array:
    """``values`` to the nearest multiple of ``resolution``, each as the double closest to that decimal.

    Rounding is done after the noise, so it takes nothing from the promise; it hides the last bits of the
    floating-point sums, which could otherwise tell values apart that the noise should blur.

    >>> import numpy as np
    >>> from sfumato.noise.entropy import round_outputs
    >>> round_outputs(np.array([0.123456, -0.26]), 0.1)
    array([ 0.1, -0.3])
    """
    check_resolution(resolution)
    values = np.asarray(values, dtype=np.float64)
    _, digits, exponent = Decimal(repr(float(resolution))).normalize().as_tuple()
    assert isinstance(exponent, int)
    with np.errstate(over="ignore"):
        multiples = np.rint(values / resolution)
        units = multiples * float(int("".join(map(str, digits))))
    exact, stepped = np.abs(units) < 2.0**53, np.abs(multiples) < 2.0**53
    # Beyond 2⁵³ units the doubles are no longer dense enough for exact decimals, and beyond 2⁵³ steps for any steps.
    rounded = np.where(stepped, np.where(stepped, multiples, 0.0) * resolution, values)
    if 0 <= exponent <= 22:
        rounded[exact] = units[exact] * 10.0**exponent
    elif -22 <= exponent < 0:
        rounded[exact] = units[exact] / 10.0**-exponent
    else:
        # 10²³ is not a double, so only the parser's correct rounding finds the closest one.
        rounded[exact] = [float(f"{int(unit)}e{exponent}") for unit in units[exact]]
    return np.asarray(rounded + 0.0, dtype=np.float64)  # + 0.0: no negative zeros


def check_resolution(resolution: Any) -> None:
    """Raise ``InputError`` unless ``resolution`` is a finite positive number of usual size."""
    number = isinstance(resolution, (int, float, np.integer, np.floating)) and not isinstance(resolution, bool)
    if not number or not 1e-300 <= float(resolution) <= 1e150:
        raise InputError(
            f"resolution is {resolution!r}; give a finite positive number in the units of y, such as 0.001."
        )


def finest_resolution(prior_std: float, prior_mean_scale: float, noise: float = 0.0) -> float:
    """The finest step that is far enough above the last bits of values of this size and of such noise."""
    if noise == 0:
        return _FINEST_WITHOUT_NOISE * (abs(prior_mean_scale) + abs(prior_std))
    return (abs(prior_mean_scale) + _VALUES_REACH * abs(prior_std) + _NOISE_REACH * noise) / LARGEST_IN_STEPS


def default_resolution(blur: float, prior_std: float, finest: float) -> float:
    """A power of ten far below the noise and far above the last bits of a double.

    About 10⁻⁶ of ``blur``, the root mean square of the noise on a row (where there is none, 10⁻⁹ of the prior's
    standard deviation), and at least ``finest``.

    Guarantee: it follows from public things only, never from y.
    """
    wanted = 1e-6 * blur if blur > 0 else 1e-9 * abs(prior_std)
    if max(wanted, finest) <= 0:
        return 1e-9
    power = math.floor(math.log10(wanted)) if wanted > 0 else -400
    if power < -300 or float(f"1e{power}") < finest:
        power = math.ceil(math.log10(finest)) if finest > 0 else -300
    return float(f"1e{min(max(power, -300), 150)}")
