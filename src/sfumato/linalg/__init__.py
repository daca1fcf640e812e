"""Numerical routines, one a file, each a function of arrays."""
