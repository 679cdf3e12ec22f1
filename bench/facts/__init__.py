"""What the facts that a gateway records for its operators cost: processor time a message, with and without them."""
