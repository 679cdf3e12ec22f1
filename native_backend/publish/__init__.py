"""Publishing, its capacity and its transactions; the evidence beside it."""
