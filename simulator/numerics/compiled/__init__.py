"""The compiled tier: machine code for casts, made by numba on first need and kept on disk.

Three kinds of loops give the reference's bits. `kernels` compiles the reference's own steps, for a family of formats
with everything else at run time, or for one cast, and reads tables that the reference fills; `shortcuts` goes through
single precision where a conversion instruction or an addition rounds the same way. `selection` decides which loop a
cast gets.
"""
