"""Answers for ever under one guarantee."""
