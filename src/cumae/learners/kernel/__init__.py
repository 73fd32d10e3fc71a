"""A publishable model of a table with interactions: noisy sums, and inference that knows the noise.

``features`` turns rows into whole numbers, ``sums`` is the one way by which private rows speak,
``posterior`` says what to measure next and what the releases mean, ``reference`` makes up rows
where there are no public ones, and ``classifier`` puts it together.
"""

from cumae.learners.kernel.classifier import PrivateKernelClassifier

__all__ = ["PrivateKernelClassifier"]
