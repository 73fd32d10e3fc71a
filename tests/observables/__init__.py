"""The law of observables, driven over predictors, estimators and worlds.

A life of an oracle runs as it is, but for what stands for chance and for the cipher (``ideal``): in
all worlds keys and nonces are the same, and a ciphertext is coins of its length. So nothing that
is written may differ at all between worlds of the same counts: not a byte of a file, not the order
of writes, not a line on the terminal. ``watch`` sees all that, ``worlds`` says in what worlds
differ, ``cases`` has predictors, ``lives`` plays, and ``plants`` has the channels that once were.
"""
