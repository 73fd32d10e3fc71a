"""The audit's ways to an oracle in a file: its answers, and what a thief of its disk sees."""

from cumae.store.driver.files import OracleInFile, in_a_file
from cumae.store.driver.thief import Stolen, ThiefOfFile, by_a_thief

__all__ = ["OracleInFile", "Stolen", "ThiefOfFile", "by_a_thief", "in_a_file"]
