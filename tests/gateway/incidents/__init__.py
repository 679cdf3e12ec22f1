"""Incidents as operators have them: each is really made, and one command and one page name node, peer, rule and remedy.

python -m tests.gateway.incidents          # all of them, with real brokers; how long each took
"""
