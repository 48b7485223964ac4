"""What makes two installations give the same rows: version, source files, facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import castsim
from castsim.execution.distribution.facts import facts_digest
from castsim.execution.distribution.installation import Installation, digest_of, installation, sources_digest
from castsim.execution.distribution.installation import refuse_another as refuse_another_installation
from castsim.execution.distribution.origins import LOCAL_NAME
from castsim.isa.errors import EngineError
from castsim.targets import Target, load_target


@dataclass(frozen=True, slots=True)
class Identity:
    """An installation: its version, the SHA-256 of its source files, and those of the facts of targets by name."""

    version: str
    sources: str
    facts: Mapping[str, str]

    @property
    def facts_digest(self) -> str:
        """One SHA-256 over those of all targets."""
        return digest_of(*(part.encode() for pair in sorted(self.facts.items()) for part in pair))

    @property
    def installation(self) -> Installation:
        """The installation without the facts."""
        return Installation(self.version, self.sources)


def identity(targets: Mapping[str, Target]) -> Identity:
    """Return the identity of this installation, with targets by the names that a sweep gives them."""
    return Identity(castsim.__version__, sources_digest(), {name: facts_digest(each) for name, each in targets.items()})


def refuse_another(wanted: Identity, shipped: Mapping[str, str]) -> None:
    """Refuse to work here for a sweep that another installation has begun.

    `shipped` names the shipped target for each name of the sweep that is one.

    Raises:
        EngineError: version, sources or facts differ; says which.
    """
    refuse_another_installation(wanted.installation, installation(), LOCAL_NAME, "sweep")
    if any(wanted.facts[name] != _shipped_digest(each) for name, each in shipped.items()):
        raise EngineError(
            "this worker has another castsim: its facts (other digests) are not those of the sweep "
            f"({wanted.facts_digest[:12]})"
        )


@cache
def _shipped_digest(name: str) -> str:
    return facts_digest(load_target(name))
