"""Messages and the classes of users that convert them."""
