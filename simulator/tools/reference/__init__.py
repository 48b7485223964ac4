"""The command line described for others: scripts of shells, the manual page, the schemas of JSON documents."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _completion(parser: OptionParser) -> None:
    """SHELL is bash, zsh, tcsh or fish. The script completes commands, options, targets, formats, modes and files. It
    matches this version: generate it again after an update, or let the shell do so at start-up, as below.

      bash  eval "$(castsim completion bash)"              in ~/.bashrc
      zsh   castsim completion zsh > ~/.zfunc/_castsim     in a folder of $fpath, before compinit
      tcsh  castsim completion tcsh > ~/.castsim.tcsh      and `source ~/.castsim.tcsh` in ~/.tcshrc
      fish  castsim completion fish > ~/.config/fish/completions/castsim.fish

    examples:
      castsim completion bash
    """
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh, tcsh or fish")


def _manual(parser: OptionParser) -> None:
    """The page is in troff format, for `man`: castsim(1), with every command and option. A wheel installs it.

    examples:
      castsim manual
      castsim manual > castsim.1
    """


def _schema(parser: OptionParser) -> None:
    """COMMAND is a command that takes --json, or `errors`: what every command writes when it fails. Without
    COMMAND, the documents of all commands are listed with their versions; the version goes up with every change to
    the structure.

    examples:
      castsim schema
      castsim schema run
      castsim schema errors
    """
    parser.add_argument("command", metavar="COMMAND", nargs="?", help="a command, or `errors`; default: list all")


FEATURES = (
    Feature(
        "completion",
        "editors and scripts",
        "print the script that completes commands and options in a shell",
        _completion,
        "castsim.tools.reference.completion",
        documents=("castsim.tools.reference.completion:Completion",),
    ),
    Feature(
        "manual",
        "editors and scripts",
        "print the manual page castsim(1)",
        _manual,
        "castsim.tools.reference.manual",
        documents=("castsim.tools.reference.manual:Manual",),
    ),
    Feature(
        "schema",
        "editors and scripts",
        "print the JSON Schema of a command's --json output",
        _schema,
        "castsim.tools.reference.schema",
        documents=(
            "castsim.tools.reference.schema:SchemaList",
            "castsim.tools.reference.schema:SchemaEntry",
        ),
    ),
)
