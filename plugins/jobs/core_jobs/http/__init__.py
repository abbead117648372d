"""The routes of jobs on the HTTP port."""
