"""Ensembles: models on disjoint shards, trained apart and asked together."""
