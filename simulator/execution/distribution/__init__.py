"""Independent pieces of work, carried out by processes of this machine or by the workers of a Dask cluster.

A `Task` is a function and the installation whose results are wanted; `distributed` carries out its pieces, `resumed`
keeps what is done in a `Ledger` besides, so that a second start goes on. Whoever computes, the results are the same;
only their order differs, and the `Origin` that each is handed over with.
"""
