"""Privacy costs, guarantees and budgets: no randomness, no data.

>>> from cumae.privacy import DiscreteGaussian, calibrate_gaussian
>>> cost = DiscreteGaussian(scale=600) * 20_000
>>> 0.995 < cost.epsilon(1e-6) < 1.02
True
"""

from cumae.codec import register, register_kind
from cumae.privacy.budget import Budget
from cumae.privacy.calibration import calibrate, calibrate_gaussian
from cumae.privacy.cost import (
    ZCDP,
    Approximate,
    BoundedRange,
    Composed,
    Cost,
    Gaussian,
    Pure,
    compose,
)
from cumae.privacy.discrete_gaussian import DiscreteGaussian, DiscreteGaussianVectors
from cumae.privacy.guarantee import REPLACE_ONE, Guarantee
from cumae.privacy.transforms import (
    Bootstrapped,
    Failing,
    Grouped,
    PaperBootstrapped,
    PaperLabelBoosted,
    PaperSubsampled,
    Parallel,
    Subsampled,
    bootstrap,
    group,
    label_boost,
    or_fail,
    parallel,
    subsample,
)

__all__ = [
    "REPLACE_ONE",
    "ZCDP",
    "Approximate",
    "BoundedRange",
    "Budget",
    "Composed",
    "Cost",
    "DiscreteGaussian",
    "DiscreteGaussianVectors",
    "Gaussian",
    "Guarantee",
    "Pure",
    "bootstrap",
    "calibrate",
    "calibrate_gaussian",
    "compose",
    "group",
    "label_boost",
    "or_fail",
    "parallel",
    "subsample",
]

# The names stand in files: they never change.
register_kind("guarantee", Guarantee)
register(
    "cost",
    {
        "Approximate": Approximate,
        "Bootstrapped": Bootstrapped,
        "BoundedRange": BoundedRange,
        "Composed": Composed,
        "DiscreteGaussian": DiscreteGaussian,
        "DiscreteGaussianVectors": DiscreteGaussianVectors,
        "Failing": Failing,
        "Gaussian": Gaussian,
        "Grouped": Grouped,
        "PaperBootstrapped": PaperBootstrapped,
        "PaperLabelBoosted": PaperLabelBoosted,
        "PaperSubsampled": PaperSubsampled,
        "Parallel": Parallel,
        "Pure": Pure,
        "Subsampled": Subsampled,
        "ZCDP": ZCDP,
    },
)
