"""Reloading tables while messages flow: nothing lost, and how long the gateway's loop stood still."""
