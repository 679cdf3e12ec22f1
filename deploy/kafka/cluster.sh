#!/bin/bash
# Starts three real Kafka nodes on loopback (replication 3, min.insync.replicas 2) and returns when all answer. Prints
# their addresses with commas between, and nothing else on stdout. Idempotent: nodes that are up are left alone.
# KAFKA_DIR: the directory (default var/kafka); the nodes live in its cluster/1 to cluster/3.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
"$here/libs.sh" >/dev/null
dir=${KAFKA_DIR:-$root/var/kafka}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
nodes=(1 2 3)
exec 7>"$dir/cluster-lock"
flock 7 # two callers, one cluster

# shellcheck source=ports.sh
. "$here/ports.sh"

if [ ! -f "$dir/cluster/id" ]; then
  voters=
  ports=()
  for node in "${nodes[@]}"; do
    mkdir -p "$dir/cluster/$node"
    for name in controller-port port; do
      ports+=("$(free_port "${ports[@]}")")
      echo "${ports[-1]}" >"$dir/cluster/$node/$name"
    done
    voters+=${voters:+,}$node@127.0.0.1:$(cat "$dir/cluster/$node/controller-port")
  done
  "$here/cluster-id.sh" >"$dir/cluster/id.new"
  for node in "${nodes[@]}"; do
    echo "$node" >"$dir/cluster/$node/node"
    echo "$voters" >"$dir/cluster/$node/voters"
    cp "$dir/cluster/id.new" "$dir/cluster/$node/cluster"
  done
  mv "$dir/cluster/id.new" "$dir/cluster/id"
fi

export KAFKA_JVM=${KAFKA_JVM:--Xms512m -Xmx512m}
starts=()
for node in "${nodes[@]}"; do # at the same time: one alone has no quorum, and would not answer
  env -u KAFKA_PORT KAFKA_DIR="$dir/cluster/$node" "$here/start.sh" >"$dir/cluster/$node/address" 7>&- &
  starts+=($!)
done
for start in "${starts[@]}"; do wait "$start"; done
cat "$dir"/cluster/*/address | paste -sd,
