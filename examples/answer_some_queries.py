"""Answer a number of questions by any scikit-learn classifier, without publishing it.

Shows: QueryRelease trains a decision tree on each of many small groups of private rows. The trees
vote, and noise is added to the votes. Takes about ten seconds.
"""

from __future__ import annotations

from sklearn.tree import DecisionTreeClassifier

from cumae import BudgetExhausted, QueryRelease
from cumae.datasets import load_health_survey


def main() -> None:
    survey = load_health_survey()
    rows, labels = survey.data, survey.target
    private, asked = slice(0, 25_000), slice(100_000, 101_000)

    tree = DecisionTreeClassifier(max_depth=4)  # or any other classifier, or a Pipeline
    release = QueryRelease(tree, epsilon=1.0, delta=1e-6, max_queries=1_000)
    release.fit(rows[private], labels[private])
    print(
        f"{release.n_shards_} trees vote; the noise is {release.noise_per_vote_:.0%} of the votes"
    )

    answers = release.predict(rows[asked])
    print(f"right answers: {(answers == labels[asked]).mean():.1%}")
    print(f"right answers by guessing: {1 - labels[asked].mean():.1%}")
    print(f"answers left: {release.remaining_}")
    try:
        release.predict(rows[-1:])
    except BudgetExhausted as refusal:
        print(f"one more question is refused: {refusal}")
    print(release.guarantee_)


if __name__ == "__main__":
    main()
