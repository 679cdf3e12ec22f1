"""`realmgate send` and `receive`: a small AMQP 1.0 client, for trying a gateway."""
