#!/bin/bash
# Prints a new cluster id, in the form that Kafka's storage tool wants.
set -euo pipefail
echo "K$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c 2-22)"
