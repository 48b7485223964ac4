"""Independent work on several processes or on a Dask cluster, with a ledger that lets it continue."""
