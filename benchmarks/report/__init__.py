"""The results: rows in JSON, a table on the terminal, tables of a page."""
