"""Predictors: private answers from an ensemble of models on disjoint shards."""

from cumae.data import ParquetRows, bad_rows
from cumae.predictors.bbl.predictor import GenericBBL
from cumae.predictors.everlasting.predictor import EverlastingPredictor
from cumae.predictors.release.agnostic import AgnosticQueryRelease
from cumae.predictors.release.query import QueryRelease
from cumae.predictors.release.universal import UniversalQueryRelease

__all__ = [
    "AgnosticQueryRelease",
    "EverlastingPredictor",
    "GenericBBL",
    "ParquetRows",
    "QueryRelease",
    "UniversalQueryRelease",
    "bad_rows",
]
