"""Where row chunks are worked on: here (on a CPU or a GPU), or on a Dask cluster."""
