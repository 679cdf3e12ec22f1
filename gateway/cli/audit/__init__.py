"""Who gave a command and why, and the list of the commands that were given."""
