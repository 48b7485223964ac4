"""The results that specifications accept: those of a cast that conform, and TOSA's RESCALE.

`acceptance` gives the conforming results of every element, `accepts` judges results. `rescale` executes TOSA RESCALE.
"""
