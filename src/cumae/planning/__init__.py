"""Which route to take from private rows to answers, and how good it will be, before any cost."""

from cumae.planning.advice import Advice, Prospect, plan
from cumae.planning.classifier import PrivateClassifier

__all__ = ["Advice", "PrivateClassifier", "Prospect", "plan"]
