"""The library that reads and writes Parquet, or a clear refusal where it is not installed."""

from importlib.util import find_spec

from castsim.isa.errors import ReadError

if find_spec("pyarrow") is None:
    raise ReadError("sweeps need pyarrow, which is not installed", legal=("pip install 'castsim[sweep]'",))

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["pa", "pc", "pq"]
