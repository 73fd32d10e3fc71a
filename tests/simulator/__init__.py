"""A simulator of oracles' lives: one seed is one history of processes, disks, keys and clocks.

The code of the store runs as it is, against a disk, key stores, a database server and clocks that
are simulated (``world``, ``homes``, ``servers``). A scheduler decides at each of their calls, and
at lines of the store, who goes on and what breaks (``scheduler``, ``history``). A judge outside of
the store counts what left (``judge``). ``python -m tests.simulator --help`` runs histories.
"""
