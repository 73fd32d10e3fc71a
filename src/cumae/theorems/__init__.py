"""The sample sizes that the papers print, as functions."""
