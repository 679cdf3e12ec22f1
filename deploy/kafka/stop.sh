#!/bin/bash
# Stops the node in KAFKA_DIR (default var/kafka), or the nodes of the cluster there, in order; kills what is not gone
# after 20 s. No error when nothing is running.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=${KAFKA_DIR:-$root/var/kafka}
[ -d "$dir" ] || exit 0
dir=$(cd "$dir" && pwd)
for node in "$dir"/cluster/[0-9]; do # at the same time: the last ones would wait for the first in vain
  [ -d "$node" ] && KAFKA_DIR=$node "$0" &
done
wait
exec 8>"$dir/lock"
flock 8
pid=$(cat "$dir/pid" 2>/dev/null || true)
rm -f "$dir/pid"
# A process id may belong to another process now, and a dead child may linger unreaped (no command line): only
# our own, living node is stopped.
is_ours() { tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "kafka.Kafka $dir/server.properties"; }
[ -n "$pid" ] && [ -d "/proc/$pid" ] && is_ours || exit 0
kill "$pid"
for _ in $(seq 100); do
  is_ours 2>/dev/null || exit 0
  sleep 0.2
done
kill -9 "$pid"
