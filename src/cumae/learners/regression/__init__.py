"""Numbers to predict: the noisy sums of ``learners.kernel``, with residuals that are shortened.

``target`` reads the number and its unit, ``spread`` knows how errors are spread, ``asking`` is what
is asked of each row, ``posterior`` says what shortened residuals mean, and ``learner`` puts it
together. ``model`` is what is published.
The estimators are ``kernel`` (all features) and ``linear`` (lines, with standard errors).
"""
