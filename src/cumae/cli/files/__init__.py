"""What commands about tables share: files are read, declared, checked and written here.

``source`` opens files and standard input. ``csv_text`` reads CSV as text, ``tables`` has what was
read. ``schemas`` reads what the owner declared, and ``drafts`` drafts it. ``checks`` has what is
looked at before anything is paid. ``output`` writes, and ``fitted`` reads what ``fit`` wrote.
"""
