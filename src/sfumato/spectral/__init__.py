"""Spectral densities of kernels, and the stationary kernels that quotients of them belong to."""
