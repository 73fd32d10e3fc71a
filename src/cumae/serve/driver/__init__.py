"""The audit's way to an oracle through HTTP, and attacks on what passes there."""

from cumae.serve.driver.attacks import unusable_cell
from cumae.serve.driver.http import OracleOverHttp, over_http

__all__ = ["OracleOverHttp", "over_http", "unusable_cell"]
