"""What other tables would have decided about the recorded facts."""
