"""The results of a sweep: the Parquet file, read back."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep: `rows` of which `failed` have an error, in the file `path`; its `ledger` lies beside it.

    `resumed` is the number of chunks that an earlier start had done, `chunks` that of all. `version` is that of
    castsim, `facts_digest` a digest of the target descriptions: both are in the metadata of the file too.
    """

    path: Path
    ledger: Path
    rows: int
    failed: int
    chunks: int
    resumed: int
    version: str
    facts_digest: str

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a frame of pandas.

        Raises:
            ReadError: pandas is not installed; the file is gone or another.
        """
        if find_spec("pandas") is None:
            raise ReadError("to_frame needs pandas, which is not installed", legal=("pip install 'castsim[notebook]'",))
        from castsim.exploration.sweeps.sweep_points import results_table  # noqa: PLC0415 - pyarrow is an extra

        return results_table(self.path).to_pandas()
