"""core tune --online: keeps an objective while a server serves its own traffic."""
