#!/bin/bash
# Copies Kafka's class path to .cache/kafka/libs once, again only when pom.xml or artifacts.sha256 has changed.
# Prints the directory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
libs=$root/.cache/kafka/libs
for tool in java mvn; do
  command -v "$tool" >/dev/null || {
    echo "kafka: '$tool' is missing. Debian: apt-get install -y openjdk-17-jdk-headless maven" >&2
    exit 1
  }
done
mkdir -p "$root/.cache/kafka"
exec 9>"$root/.cache/kafka/lock"
flock 9 # two test runs may want the same download
wanted=$(cat "$here/pom.xml" "$here/artifacts.sha256" | sha256sum)
if [ "$(cat "$libs/.pom" 2>/dev/null || true)" != "$wanted" ]; then
  echo "kafka: copying the broker's class path to .cache/kafka/libs (first time: a download of about 100 MB)" >&2
  rm -rf "$libs"
  "$root/deploy/maven/class-path.sh" "$here/pom.xml" "$libs.new"
  echo "$wanted" >"$libs.new/.pom"
  mv "$libs.new" "$libs"
fi
echo "$libs"
