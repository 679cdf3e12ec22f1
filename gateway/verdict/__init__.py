"""What is wrong at one or several gateways, made from what they answer: for the command line and for the console."""
