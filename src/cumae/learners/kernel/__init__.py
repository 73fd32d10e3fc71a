"""A publishable model of a table with interactions: noisy sums, and inference that knows the noise.

``features`` turns rows into whole numbers, ``sums`` is the one way by which private rows speak,
``posterior`` says what to measure next and what the releases mean, and ``reference`` makes up rows
where there are no public ones. ``learner`` puts it together, and ``classifier`` is the learner with
all features. ``model`` is what is published; ``effects``, ``pictures`` and ``readable`` show it.
"""
