"""What is known of earlier reconciliations: findings that keep their name from one to the next, and records of runs."""
