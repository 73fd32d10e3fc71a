"""Predictors: private answers from an ensemble of models on disjoint shards."""

from cumae.predictors.agnostic import AgnosticQueryRelease
from cumae.predictors.everlasting import EverlastingPredictor
from cumae.predictors.generic_bbl import GenericBBL
from cumae.predictors.query_release import QueryRelease
from cumae.predictors.rows import ParquetRows
from cumae.predictors.universal import UniversalQueryRelease
from cumae.predictors.unusable import bad_rows

__all__ = [
    "AgnosticQueryRelease",
    "EverlastingPredictor",
    "GenericBBL",
    "ParquetRows",
    "QueryRelease",
    "UniversalQueryRelease",
    "bad_rows",
]
