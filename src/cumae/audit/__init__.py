"""Attacks on the package's own guarantees: a game, adversaries, and what they prove."""

from cumae.audit.game import Driver, Game, InProcess, Seen
from cumae.audit.runs import Attack, Audit, Claimed, audit

__all__ = ["Attack", "Audit", "Claimed", "Driver", "Game", "InProcess", "Seen", "audit"]
