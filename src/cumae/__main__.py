"""``python -m cumae`` is the ``cumae`` command, for those whose path does not have it."""

from cumae.cli import main

if __name__ == "__main__":
    main()
