"""The format of a capture: records, their files, and a reader of a folder."""
