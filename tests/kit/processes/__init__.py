"""Processes and what lies around them: gateways, brokers, disks, certificates, foreign toolchains."""
