"""A publishable model of a table with interactions: noisy sums, and inference that knows the noise.

``features`` turns rows into whole numbers, ``sums`` is the one way by which private rows speak,
``posterior`` says what to measure next and what the releases mean, and ``reference`` makes up rows
where there are no public ones. ``learner`` puts it together. ``model`` is what is published, and
``shown`` shows it. ``levels`` tells values of a column apart, ``relevance`` finds the columns that
matter, and ``linear`` solves for the coefficients.

The estimators stand above: ``cumae.learners.logistic`` has lines and curves, and
``cumae.learners.kernel_classifier`` all features, or trees where rows are few.
"""
