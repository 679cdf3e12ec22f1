#!/bin/bash
# Copies Artemis's class path, and the journal's native library, to .cache/artemis; again only when pom.xml or
# artifacts.sha256 has changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=$root/.cache/artemis
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
wanted=$(cat "$here/pom.xml" "$here/artifacts.sha256" | sha256sum)
if [ "$(cat "$cache/libs/.pom" 2>/dev/null || true)" != "$wanted" ]; then
  rm -rf "$cache/libs" "$cache/native"
  "$root/deploy/maven/class-path.sh" "$here/pom.xml" "$cache/libs.new"
  mkdir "$cache/native"
  (cd "$cache/native" && jar xf "$cache"/libs.new/activemq-artemis-native-*.jar lib)
  echo "$wanted" >"$cache/libs.new/.pom"
  mv "$cache/libs.new" "$cache/libs"
fi
echo "$cache"
