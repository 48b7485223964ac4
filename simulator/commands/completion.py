"""SHELL is bash, zsh, tcsh or fish. The script completes commands, options, targets, formats, modes and files. It
matches this version: generate it again after an update, or let the shell do so at start-up, as below.

  bash  eval "$(castsim completion bash)"              in ~/.bashrc
  zsh   castsim completion zsh > ~/.zfunc/_castsim     in a folder of $fpath, before compinit
  tcsh  castsim completion tcsh > ~/.castsim.tcsh      and `source ~/.castsim.tcsh` in ~/.tcshrc
  fish  castsim completion fish > ~/.config/fish/completions/castsim.fish

examples:
  castsim completion bash
"""

from __future__ import annotations

from argparse import ArgumentParser

SUMMARY = "print the script that lets a shell complete castsim's commands and options"

SHELLS = ("bash", "zsh", "tcsh", "fish")
"""Shells that there are scripts for."""


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh, tcsh or fish")
