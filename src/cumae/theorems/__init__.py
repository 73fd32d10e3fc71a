"""The sample sizes that the papers print, as functions, with every constant as printed.

The library, its proofs and its docs number the four papers that it builds on:

1. Beimel, Nissim, Stemmer: Learning Privately with Labeled and Unlabeled Examples.
2. Naor, Nissim, Stemmer, Yan: Private Everlasting Prediction.
3. Nandi, Bassily: Privately Answering Classification Queries in the Agnostic PAC Model.
4. Alon, Bassily, Moran: Limits of Private Learning with Access to Public Data.
"""

from cumae.theorems.stated import Theorem
from cumae.theorems.table import THEOREMS, listing
from cumae.theorems.values import OrderOf

__all__ = ["THEOREMS", "OrderOf", "Theorem", "listing"]
