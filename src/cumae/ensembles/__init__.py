"""Ensembles: models on disjoint shards, trained apart and asked together.

``split`` draws which rows belong to which shard. ``trial`` tries the estimator on made-up rows
before any private row is used, and ``sizing`` finds how large its shards must be. ``trainer``
trains one model for each shard, in the conditions that ``isolation`` sets up; ``growing`` trains
many small models in one loop. ``ensemble`` holds the models and counts their votes: ``voters``
turns models of the same kind into arrays, and asks all others one by one, in the tables of fixed
shape that ``blocks`` makes.
"""
