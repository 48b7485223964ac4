"""The options that raise the limits of what is read and walked, for every command that walks programs."""

from __future__ import annotations

from argparse import ArgumentParser


def declare_limits(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--max-walk",
        metavar="N",
        help="follow up to N trips and statements of loops (default 200000), compute up to N executions (1000000)",
    )
    declare_statements(parser)


def declare_elements(parser: ArgumentParser, default: int) -> None:
    """Add the option of commands that compute tensors."""
    parser.add_argument("--max-elements", metavar="N", help=f"compute tensors of up to N elements; default: {default}")


def declare_statements(parser: ArgumentParser) -> None:
    """Add the option of commands that read and do not walk."""
    parser.add_argument("--max-statements", metavar="N", help="read up to N statements or bundles (default 200000)")
