"""castsim: cycle-approximate, bit-exact simulation of the vector cast units of NPUs.

    import castsim

    castsim.cast([1.5, 70000.0], "f32", "f16", target="a2a3")
    castsim.estimate("f32", "f16", 16, 256, target="a5").cycles
    castsim.formats("e4m3")[0].largest
    castsim.run("kernel.pto", inputs={"x": "random:1"})
    castsim.lower("f32", "i8", target="a2a3", spec="tosa")
    castsim.check("kernel.pto")
    castsim.accuracy("a5").to_frame("curves")
    castsim.diff("before.pto", "after.pto", inputs={"x": "random:1"}).lines

Every error is a `castsim.CastsimError`. Large modules are imported only when one of the names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from castsim.isa.errors import (
        CastsimError,
        EngineError,
        IllegalError,
        LimitError,
        RaceError,
        ReadError,
        ScratchError,
        StaleReadError,
        TargetDataError,
        TileError,
    )
    from castsim.isa.reading import file_limit
    from castsim.machines.casting import cast
    from castsim.reports.pairs import formats
    from castsim.running.program_runs import Result, run
    from castsim.targets.loader import Target, load_target, target_names
    from castsim.tools.accuracy.accuracy_assessment import AccuracyTables, accuracy
    from castsim.tools.advise.advice_search import Advice, advise
    from castsim.tools.check.checking import Finding, check, check_text
    from castsim.tools.compare.user_conversions import Comparison, compare
    from castsim.tools.diff.comparing import diff
    from castsim.tools.diff.differences import ComparisonError, Difference
    from castsim.tools.estimate.cast_estimates import Estimate, Estimates
    from castsim.tools.estimate.tile_estimates import estimate
    from castsim.tools.lowering.conformance import Matrix, conform
    from castsim.tools.lowering.lowering_answers import Answer, lower
    from castsim.tools.quantise.quantisation import Quantised, dequantise, quantise
    from castsim.tools.sweep.studies import Sweep, sweep
    from castsim.tools.tpc_compiler.builtin_calls import BuiltinResult, builtin
    from castsim.tools.tune.studies import Tuning, tune

__version__ = "0.4.0"
__all__ = [
    "AccuracyTables",
    "Advice",
    "Answer",
    "BuiltinResult",
    "CastsimError",
    "Comparison",
    "ComparisonError",
    "Difference",
    "EngineError",
    "Estimate",
    "Estimates",
    "Finding",
    "IllegalError",
    "LimitError",
    "Matrix",
    "Quantised",
    "RaceError",
    "ReadError",
    "Result",
    "ScratchError",
    "StaleReadError",
    "Sweep",
    "Target",
    "TargetDataError",
    "TileError",
    "Tuning",
    "__version__",
    "accuracy",
    "advise",
    "builtin",
    "cast",
    "check",
    "check_text",
    "compare",
    "conform",
    "dequantise",
    "diff",
    "estimate",
    "file_limit",
    "formats",
    "load_target",
    "lower",
    "quantise",
    "run",
    "sweep",
    "target_names",
    "tune",
]

_HOMES = {
    "castsim.machines.casting": ("cast",),
    "castsim.tools.check.checking": ("Finding", "check", "check_text"),
    "castsim.tools.estimate.cast_estimates": ("Estimate", "Estimates"),
    "castsim.tools.estimate.tile_estimates": ("estimate",),
    "castsim.tools.accuracy.accuracy_assessment": ("AccuracyTables", "accuracy"),
    "castsim.tools.compare.user_conversions": ("Comparison", "compare"),
    "castsim.tools.diff.differences": ("ComparisonError", "Difference"),
    "castsim.tools.advise.advice_search": ("Advice", "advise"),
    "castsim.isa.errors": (
        "CastsimError", "EngineError", "IllegalError", "LimitError", "RaceError", "ReadError", "ScratchError",
        "StaleReadError", "TargetDataError", "TileError",
    ),
    "castsim.isa.reading": ("file_limit",),
    "castsim.tools.sweep.studies": ("Sweep", "sweep"),
    "castsim.tools.tune.studies": ("Tuning", "tune"),
    "castsim.tools.lowering.conformance": ("Matrix", "conform"),
    "castsim.tools.lowering.lowering_answers": ("Answer", "lower"),
    "castsim.tools.quantise.quantisation": ("Quantised", "dequantise", "quantise"),
    "castsim.tools.notebooks.presentation": ("plot_of", "presentation_of"),
    "castsim.tools.notebooks.runs": ("timeline_of",),
    "castsim.tools.diff.comparing": ("diff",),
    "castsim.reports.pairs": ("formats",),
    "castsim.running.program_runs": ("Result", "run"),
    "castsim.targets.loader": ("Target", "load_target", "target_names"),
    "castsim.tools.tpc_compiler.builtin_calls": ("BuiltinResult", "builtin"),
}  # fmt: skip
"""The names of each module that are also names of castsim."""


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))


if not TYPE_CHECKING:  # type checkers know the names above and refuse others

    def __getattr__(name: str) -> object:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'castsim' has no attribute '{name}'")
        from importlib import import_module  # noqa: PLC0415 - not a name of castsim

        try:
            module = import_module(home)
        except ModuleNotFoundError as error:
            if error.name is None or not home.startswith(error.name):
                raise
            raise AttributeError(f"castsim.{name}: this castsim was installed without {error.name}") from None
        value = globals()[name] = getattr(module, name)
        return value
