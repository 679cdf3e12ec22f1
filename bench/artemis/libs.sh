#!/bin/bash
# Copies Artemis's class path, and the journal's native library, to .cache/artemis; again only when pom.xml has changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/artemis
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
wanted=$(sha256sum <"$here/pom.xml")
if [ "$(cat "$cache/libs/.pom" 2>/dev/null || true)" != "$wanted" ]; then
  rm -rf "$cache/libs" "$cache/libs.new" "$cache/native"
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$cache/libs.new" >&2
  mkdir "$cache/native"
  (cd "$cache/native" && jar xf "$cache"/libs.new/activemq-artemis-native-*.jar lib)
  echo "$wanted" >"$cache/libs.new/.pom"
  mv "$cache/libs.new" "$cache/libs"
fi
echo "$cache"
