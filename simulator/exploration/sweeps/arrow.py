"""The library that reads and writes Parquet, or a clear refusal where it is not installed."""

import os
from importlib.util import find_spec

from castsim.isa.errors import ReadError

if find_spec("pyarrow") is None:
    raise ReadError("sweeps need pyarrow, which is not installed", legal=("pip install 'castsim[sweep]'",))

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def reason_of(error: OSError) -> str:
    """Return why a file cannot be read or written, in the words of the system where pyarrow gives its number."""
    return os.strerror(error.errno) if error.errno else str(error)


__all__ = ["pa", "pc", "pq", "reason_of"]
