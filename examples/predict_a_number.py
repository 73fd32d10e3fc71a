"""Publish a model that predicts a number, with intervals that count the noise.

Shows: PrivateKernelRegressor learns the body mass index from 10,000 interviews, and gives intervals
that hold nine of ten numbers. Takes about ten seconds.
"""

from __future__ import annotations

from cumae import PrivateKernelRegressor
from cumae.datasets import load_health_survey


def main() -> None:
    survey = load_health_survey()
    weight, rows = survey.data["BMI"], survey.data.drop(columns="BMI")
    columns = {name: (*survey.bounds[name], 1) for name in rows}
    private, other = slice(0, 10_000), slice(100_000, 110_000)

    # Known without the rows: nobody is below 12 or above 98.
    model = PrivateKernelRegressor(1.0, 1e-6, target_range=(12, 98), n_waves=20, columns=columns)
    model.fit(rows[private], weight[private])
    low, high = model.predict_interval(rows[other], coverage=0.9).T
    inside = ((low <= weight[other]) & (weight[other] <= high)).mean()
    print(f"explained of the variance: {model.score(rows[other], weight[other]):.1%}")
    print(f"intervals of 90 % that hold the number: {inside:.1%}")
    print(model.guarantee_)
    print(model)  # what each column adds to the mean, and how sure that is


if __name__ == "__main__":
    main()
