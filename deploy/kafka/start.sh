#!/bin/bash
# Starts one real Kafka node on loopback and returns when it answers. Prints 127.0.0.1:PORT and nothing else on stdout.
# Idempotent: a node that is up is left alone. KAFKA_DIR: its directory (default var/kafka). KAFKA_PORT: its port
# (default: the port it had before, else 9092 when that is free, else any free one). KAFKA_JVM: options
# (default: a heap of 1 GiB). KAFKA_GC: the collector (default: Shenandoah where the JVM has it, else G1).
# KAFKA_ARCHIVE: of Java's classes (default: what classes.sh has made, if it is there).
# KAFKA_EXTRA, KAFKA_FORMAT, KAFKA_CA, KAFKA_TAKEN, KAFKA_TRIES: see secured.sh. PORTS_FROM, PORTS: see ports.sh.
# A node whose directory names the voters of a quorum (cluster.sh writes that) is one of several.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
libs=$("$here/libs.sh")
dir=${KAFKA_DIR:-$root/var/kafka}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 8>"$dir/lock"
flock 8 # two callers, one node

# shellcheck source=ports.sh
. "$here/ports.sh"
# An ApiVersions request, and the length and correlation id of its response. KAFKA_CA: the port speaks TLS.
answers() {
  local got
  if [ -n "${KAFKA_CA:-}" ]; then # a handshake is answered only by a node that serves
    timeout 5 openssl s_client -connect "127.0.0.1:$1" -CAfile "$KAFKA_CA" -verify_return_error \
      </dev/null >/dev/null 2>&1
    return
  fi
  got=$({
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf '\0\0\0\012\0\022\0\0\0\0\0\1\377\377' >&3
    timeout 2 head -c 8 <&3 | tail -c 4 | od -An -tx1 | tr -d ' \n'
  } 2>/dev/null) || true
  [ "$got" = 00000001 ]
}
is_ours() {
  [ -n "$1" ] && tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF "kafka.Kafka $dir/server.properties"
}

pid=$(cat "$dir/pid" 2>/dev/null || true)
port=$(cat "$dir/port" 2>/dev/null || true)
if is_ours "$pid" 2>/dev/null; then
  if [ -n "${KAFKA_PORT:-}" ] && [ "$KAFKA_PORT" != "$port" ]; then
    echo "kafka: the node in $dir is already up on port $port (KAFKA_PORT=$KAFKA_PORT asked): make kafka-stop first" >&2
    exit 1
  fi
else
  pid=
  wanted=${KAFKA_PORT:-$port}
  if [ -z "$wanted" ]; then
    wanted=9092
    is_free "$wanted" || wanted=$(free_port "${KAFKA_TAKEN:-}")
  fi
  port=$wanted
  for _ in $(seq 25); do # a node that was killed a moment ago is still letting go of its sockets
    is_free "$port" && break
    sleep 0.2
  done
  if ! is_free "$port"; then
    echo "kafka: port $port is taken by another process; say KAFKA_PORT=N" >&2
    exit 1
  fi
  # The controller's address is in the node's own log: it must stay what it was at the first start.
  controller=$(cat "$dir/controller-port" 2>/dev/null || free_port "$port" "${KAFKA_TAKEN:-}")
  echo "$port" >"$dir/port"
  echo "$controller" >"$dir/controller-port"
  voters=$(cat "$dir/voters" 2>/dev/null || true)
  {
    cat "$here/server.properties"
    if [ -n "$voters" ]; then
      echo "node.id=$(cat "$dir/node")"
      cat "$here/replicated.properties"
      echo "controller.quorum.voters=$voters"
    else
      echo "controller.quorum.bootstrap.servers=127.0.0.1:$controller"
    fi
    echo "listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller"
    echo "advertised.listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller"
    echo "log.dirs=$dir/data"
    [ -z "${KAFKA_EXTRA:-}" ] || sed "s/@PORT@/$port/g; s/@CONTROLLER@/$controller/g" "$KAFKA_EXTRA"
  } >"$dir/server.properties"
  java=(java -cp "$libs/*" "-Dlog4j2.configurationFile=file:$here/log4j2.properties")
  archive=${KAFKA_ARCHIVE:-${libs%/*}/classes.jsa}
  [ ! -f "$archive" ] || java+=("-XX:SharedArchiveFile=$archive")
  if [ ! -f "$dir/data/meta.properties" ]; then
    cluster=$(cat "$dir/cluster" 2>/dev/null || "$here/cluster-id.sh")
    standalone=--standalone
    [ -z "$voters" ] || standalone=
    "${java[@]}" -XX:TieredStopAtLevel=1 kafka.tools.StorageTool format -t "$cluster" $standalone \
      -c "$dir/server.properties" ${KAFKA_FORMAT:+"$KAFKA_FORMAT"} >"$dir/format.log" 2>&1 8>&- ||
      { cat "$dir/format.log" >&2; exit 1; }
  fi
  # G1 stops a node whose machine is busy for 15 to 35 ms every few seconds, and who waits for an append waits with it.
  shenandoah=-XX:+UseShenandoahGC
  if [ -z "${KAFKA_GC:-}" ] && ! java "$shenandoah" -version >/dev/null 2>&1; then
    KAFKA_GC="-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:+ExplicitGCInvokesConcurrent"
  fi
  read -ra jvm <<<"${KAFKA_JVM:--Xms1g -Xmx1g} ${KAFKA_GC:-$shenandoah}"
  setsid "${java[@]}" "${jvm[@]}" \
    kafka.Kafka "$dir/server.properties" >>"$dir/out.log" 2>&1 </dev/null 8>&- &
  pid=$!
  echo "$pid" >"$dir/pid"
fi

for _ in $(seq "${KAFKA_TRIES:-300}"); do # 60 s
  if answers "$port"; then
    echo "127.0.0.1:$port"
    exit 0
  fi
  sleep 0.2 # also the time that the child needs to become the node
  is_ours "$pid" 2>/dev/null || break
done
echo "kafka: the node in $dir does not answer on port $port; the end of its log:" >&2
tail -20 "$dir/out.log" >&2
exit 1
