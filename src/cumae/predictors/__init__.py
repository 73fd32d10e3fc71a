"""Predictors: private answers from an ensemble of models on disjoint shards."""

from cumae.predictors.query_release import QueryRelease
from cumae.predictors.rows import ParquetRows, bad_rows

__all__ = ["ParquetRows", "QueryRelease", "bad_rows"]
