"""The process that serves: its realm, its limits of the system, its start and its end."""
