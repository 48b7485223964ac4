"""The commands: one module each that declares the arguments, and one in `execution/` that does the work.

A declaration has `SUMMARY` (one line of the help) and `declare(parser)` (its arguments); its docstring ends the help.
It imports nothing but argparse: `--help` must answer at once. What commands share stands in `limits` (declarations),
`words` and `assembly_files` (meaning), which import no command.
"""
