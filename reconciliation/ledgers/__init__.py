"""What clients noted of their own messages, held against what the realm keeps and the gateways recorded."""
