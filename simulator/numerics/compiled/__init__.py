"""The compiled tier: machine code for casts, made by numba on first need and kept on disk.

Three kinds of loops give the reference's bits. Two compile the reference's own steps (`steps`), for a family of formats
with everything else at run time, or for one cast, and read tables that the reference fills; the third goes through
single precision where a conversion instruction or an addition rounds the same way. `selection` has the loops and
decides which one a cast gets.
"""
