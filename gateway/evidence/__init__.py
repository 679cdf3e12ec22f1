"""What is recorded of the gateway's decisions: outcomes, counters, notices."""
