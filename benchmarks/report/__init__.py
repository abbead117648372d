"""What was found: as rows in JSON, as a table on the terminal, as tables of a page."""
