"""Fragments of tile programs: the statements of `castsim run -e`."""
