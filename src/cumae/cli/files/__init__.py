"""The shared part of commands about tables: files are read, declared, checked and written here.

``source`` opens files and standard input. ``csv_text`` reads CSV as text, ``headers`` reads names
and types of columns alone, and ``tables`` has what was read. ``schemas`` reads what the owner
declared, ``drafts`` drafts it, and ``guesses`` has what public rows say about columns. ``checks``
has what is looked at before anything is paid. ``messages`` says what happens, ``output`` writes,
and ``fitted`` reads what ``fit`` wrote.
"""
