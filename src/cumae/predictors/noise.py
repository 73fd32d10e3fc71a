"""Good noise and too much noise: the same numbers for all predictors.

Noise is measured per vote: its standard deviation as a share of the number of votes.
"""

from __future__ import annotations

AIMED_NOISE = 0.12  # what "auto" aims at where phases follow each other
GOOD_NOISE = 0.15  # up to here a release works well
MUCH_NOISE = 0.3  # beyond it answers are hardly better than chance

SURE = 0.95  # how often a class must win at the lead by which mechanisms are compared
SURE_DEVIATIONS = 1.645  # normal noise stays below so many standard deviations that often
