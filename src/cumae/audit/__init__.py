"""Attacks on the package's own guarantees: a game, adversaries, and what they prove."""

from cumae.audit.game import Driver, Game, InProcess, Seen
from cumae.audit.results import Audit, Claimed
from cumae.audit.runs import Attack, audit

__all__ = ["Attack", "Audit", "Claimed", "Driver", "Game", "InProcess", "Seen", "audit"]
