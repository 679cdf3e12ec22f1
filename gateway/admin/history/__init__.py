"""The history that `/api/history` answers: pages of rows, out of the records of its topic."""
