"""What an ATTACH says of its source and target, and what the answer says."""
