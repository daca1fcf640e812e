"""The least eigenvalue against all of them."""

from __future__ import annotations

import pytest
import torch

from sfumato.linalg import least_eigenvalue


@pytest.mark.parametrize("size", [5, 200])
@pytest.mark.parametrize("spread", [1.0, 1e6])
def test_the_least_eigenvalue_is_found(size: int, spread: float) -> None:
    generator = torch.Generator().manual_seed(7)
    turn = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0]
    values = torch.linspace(-1.0, 1.0, size, dtype=torch.float64) ** 3
    values[-1] = spread
    found = least_eigenvalue((turn * values) @ turn.T)
    assert -1.05 <= found <= -1.0 + 1e-9 * spread


@pytest.mark.parametrize("low", [1.0, -0.5])
def test_a_matrix_with_two_eigenvalues_takes_two_products(low: float) -> None:
    values = torch.full((200,), 1.0, dtype=torch.float64)
    values[:10] = low
    assert least_eigenvalue(torch.diag(values)) == pytest.approx(low, abs=1e-9)
