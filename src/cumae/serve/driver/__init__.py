"""The audit's way to an oracle behind the server."""

from cumae.serve.driver.http import OracleOverHttp, over_http

__all__ = ["OracleOverHttp", "over_http"]
