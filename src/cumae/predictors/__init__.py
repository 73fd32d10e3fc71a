"""Predictors: private answers from an ensemble of models on disjoint shards."""

from cumae.codec import add_form, register
from cumae.data import ParquetRows, bad_rows
from cumae.predictors.answering.calls import Call
from cumae.predictors.base import Predictor
from cumae.predictors.bbl.predictor import GenericBBL
from cumae.predictors.everlasting.predictor import EverlastingPredictor
from cumae.predictors.release.agnostic import AgnosticQueryRelease
from cumae.predictors.release.query import QueryRelease
from cumae.predictors.release.universal import UniversalQueryRelease

__all__ = [
    "AgnosticQueryRelease",
    "Call",
    "EverlastingPredictor",
    "GenericBBL",
    "ParquetRows",
    "QueryRelease",
    "UniversalQueryRelease",
    "bad_rows",
]

# The names stand in files: they never change.
add_form("predictor", Predictor, write=None)  # what is stored is its state
register(
    "predictor",
    {
        "AgnosticQueryRelease": AgnosticQueryRelease,
        "EverlastingPredictor": EverlastingPredictor,
        "GenericBBL": GenericBBL,
        "QueryRelease": QueryRelease,
        "UniversalQueryRelease": UniversalQueryRelease,
    },
)
