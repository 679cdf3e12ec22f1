"""What one peer may have of what all draw on: shares of limits, and memory."""
