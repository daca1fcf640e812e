"""The paper's own experiments."""
