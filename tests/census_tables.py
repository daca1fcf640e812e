"""Made-up census tables for tests: the columns of the Bureau's person file, filled by a fixed generator."""

from __future__ import annotations

import numpy as np
import pandas as pd


def made_up_pums(rows: int, seed: int = 5) -> pd.DataFrame:
    """Children without income, people without work, and incomes that depend on age and area."""
    random = np.random.default_rng(seed)
    age = np.floor(96 * random.random(rows) ** 2.5)  # few are old
    area = 100 * random.integers(1, 71, rows)
    income = 1000 * np.round(40 + 30 * np.sin(age / 15) + area / 500 + 10 * random.normal(size=rows))
    work = np.where(random.random(rows) < 0.45, np.nan, area)
    return pd.DataFrame(
        {
            "SERIALNO": [f"2023GQ{number:07d}" for number in range(rows)],
            "PUMA": area,
            "AGEP": age,
            "ANC1P": random.choice([50, 290, 999], rows),
            "PINCP": np.where(age < 3, np.nan, income),
            "POBP": random.choice([1, 48, 303], rows),
            "POWPUMA": work,
        }
    )
