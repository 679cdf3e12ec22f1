"""What gateways and reports say, read and put together; pure: no socket, no clock of its own."""
