"""Bundled data for demonstrations, examples and tests."""

from cumae.datasets.health_survey import (
    HEALTH_SURVEY_BOUNDS,
    HEALTH_SURVEY_MEANINGS,
    load_health_survey,
)

__all__ = ["HEALTH_SURVEY_BOUNDS", "HEALTH_SURVEY_MEANINGS", "load_health_survey"]
