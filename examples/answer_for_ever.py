"""Answer questions for ever under one promise, also after a restart.

Shows: EverlastingPredictor answers 30,000 questions from 5,000 private rows. In the middle the
process could die: the oracle lives in a file, which is opened again. Takes about ten seconds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import cumae
from cumae.concepts import Thresholds


def main() -> None:
    rng = np.random.default_rng(0)
    readings = rng.random((5_000, 1))  # private: made up here
    ill = readings[:, 0] > 0.6
    # Thresholds() says that the rule is one number; any scikit-learn classifier can be given, too.
    oracle = cumae.EverlastingPredictor(Thresholds(), epsilon=1.0, delta=1e-6, columns=[(0, 1)])
    oracle.fit(readings, ill)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oracle.db"
        oracle.save_to(path)
        for start in ("first start", "after a restart"):
            opened = cumae.open(path)
            questions = rng.random((15_000, 1))
            answers = opened.predict(questions)
            right = np.mean(answers == (questions[:, 0] > 0.6))
            print(f"{start}: {right:.1%} of 15,000 answers are right")
            print(f"answers so far: {opened.answered_:,}, answers left: {opened.remaining_}")
            opened.close()
        print(opened.guarantee_)


if __name__ == "__main__":
    main()
