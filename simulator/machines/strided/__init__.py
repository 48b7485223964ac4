"""The strided-repeat mechanism: memory-to-memory vector instructions with repeats, strides and a lane mask."""
