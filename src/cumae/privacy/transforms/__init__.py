"""Costs after rows are subsampled, relabelled, resampled, grouped or split.

Where the papers print a formula and a tighter one is proven, ``variant`` chooses between
``"paper"`` and ``"tight"``, the default.
"""

from cumae.privacy.transforms.bootstrapping import Bootstrapped, PaperBootstrapped, bootstrap
from cumae.privacy.transforms.disjoint import Parallel, parallel
from cumae.privacy.transforms.failure import Failing, or_fail
from cumae.privacy.transforms.groups import Grouped, group
from cumae.privacy.transforms.label_boosting import PaperLabelBoosted, label_boost
from cumae.privacy.transforms.subsampling import PaperSubsampled, Subsampled, subsample

__all__ = [
    "Bootstrapped",
    "Failing",
    "Grouped",
    "PaperBootstrapped",
    "PaperLabelBoosted",
    "PaperSubsampled",
    "Parallel",
    "Subsampled",
    "bootstrap",
    "group",
    "label_boost",
    "or_fail",
    "parallel",
    "subsample",
]
