"""A table and queries for tests of QueryRelease."""

from __future__ import annotations

import numpy as np

GENERATOR = np.random.default_rng(1)
X = GENERATOR.random((4000, 2))
Y = (X[:, 0] > 0.4).astype(int)
QUERIES = GENERATOR.random((50, 2))
