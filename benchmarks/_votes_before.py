"""How much throughput do blocks of one shape cost models that are asked one by one?

    python benchmarks/_votes_before.py OLD/src NEW/src

times the votes of two checkouts, in turns, and writes benchmarks/results/votes_before.json: the
throughput of the second as a share of that of the first. The first was d0fa759, the last commit
that asked models about whole batches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RESULT = Path(__file__).parent / "results" / "votes_before.json"
TURNS = 3
TIMED = """
import json, time, warnings
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

try:
    from cumae.ensembles.ensemble import count_votes
    from cumae.ensembles.voters.stacking import stack
    more = (np.full((1, 20), 0.5),)
except ImportError:
    from cumae.predictors.votes import count_votes, stack
    more = ()

def rows(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 20))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)

warnings.simplefilter("ignore")
kinds = {
    "nearest_neighbours": KNeighborsClassifier(),
    "support_vectors": SVC(),
    "naive_bayes": GaussianNB(),
    "logistic_of_arctan": make_pipeline(FunctionTransformer(np.arctan), LogisticRegression()),
    "boosted_trees": HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5),
}
X, found = rows(10_000, 1)[0], {}
for name, kind in kinds.items():
    voters = stack([clone(kind).fit(*rows(50, i)) for i in range(20)], 2, *more)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        count_votes(voters, X, 2)
        times.append(time.perf_counter() - start)
    found[name] = min(times)
print(json.dumps(found))
"""


def seconds(source: str) -> dict[str, float]:
    """Return the best time of each kind of model."""
    ran = subprocess.run(
        [sys.executable, "-c", TIMED],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def main() -> None:
    turns = [[seconds(source) for source in sys.argv[1:3]] for _ in range(TURNS)]
    share = {
        name: round(min(old[name] for old, _ in turns) / min(new[name] for _, new in turns), 2)
        for name in turns[0][0]
    }
    result = {"models": 20, "queries": 10_000, "columns": 20, "share_of_throughput": share}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
