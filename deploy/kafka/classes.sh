#!/bin/bash
# Makes Java's archive of the classes that a node loads, in .cache/kafka/classes.jsa: a node then starts with half the
# processor time. start.sh uses it if it is there. Made once, again when Java or Kafka's class path has changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
libs=$("$here/libs.sh")
archive=${libs%/*}/classes.jsa
exec 9>"$archive.lock"
flock 9
wanted=$(cat "$libs/.pom" && java -version 2>&1)
[ "$(cat "$archive.of" 2>/dev/null || true)" != "$wanted" ] || exit 0
making=$(mktemp -d)
export KAFKA_DIR=$making/node KAFKA_ARCHIVE=$making/none
trap '"$here/stop.sh" 9>&-; rm -rf "$making"' EXIT
# Another port than the usual one: a node of this machine may be there.
# shellcheck source=ports.sh
. "$here/ports.sh"
KAFKA_PORT=$(free_port "") KAFKA_JVM="-Xms256m -Xmx1g -XX:ArchiveClassesAtExit=$making/classes.jsa" \
  "$here/start.sh" 9>&- >&2
pid=$(cat "$KAFKA_DIR/pid")
kill "$pid"
for _ in $(seq 600); do # 120 s: it writes the archive when it ends
  [ -d "/proc/$pid" ] || break
  sleep 0.2
done
"$here/stop.sh" 9>&- # kills it, if it has not ended
if [ -f "$making/classes.jsa" ]; then
  rm -f "$archive.of"
  mv "$making/classes.jsa" "$archive"
  echo "$wanted" >"$archive.of"
else
  echo "kafka: Java wrote no archive of its classes; nodes start without it, and slower" >&2
fi
