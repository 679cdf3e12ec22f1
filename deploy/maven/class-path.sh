#!/bin/bash
# The class path of a pom.xml, by Maven: versions stand in the pom, what they are in artifacts.sha256 beside it.
#   class-path.sh POM DIRECTORY          copies it to DIRECTORY; fails, and leaves nothing, when an artifact is another
#                                        than was listed, is not listed, or is missing
#   class-path.sh --check POM DIRECTORY  looks at what is there
#   class-path.sh --lock POM             writes the list anew; review the difference
# What was downloaded once is in Maven's own repository: it needs no network again, and is checked all the same.
# --strict-checksums: a download (of Maven's plugins, too) that is not what the repository announces is an error.
set -euo pipefail
export LC_ALL=C

copied() { # POM DIRECTORY
  mvn -q -B --strict-checksums -f "$1" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$2" >&2
}
listed() { # DIRECTORY
  (cd "$1" && sha256sum -- *.jar)
}
checked() { # POM DIRECTORY
  local list
  list=$(dirname "$1")/artifacts.sha256
  listed "$2" | diff "$list" - >&2 && return
  echo "maven: the artifacts of $1 (>) are not those of $list (<). When versions were changed on purpose:" >&2
  echo "  deploy/maven/class-path.sh --lock $1" >&2
  return 1
}

case "$1" in
  --check) checked "$2" "$(realpath -s "$3")" ;;
  --lock)
    new=$(mktemp -d)
    trap 'rm -rf "$new"' EXIT
    copied "$2" "$new"
    listed "$new" >"$(dirname "$2")/artifacts.sha256"
    ;;
  *)
    to=$(realpath -sm "$2")
    rm -rf "$to"
    copied "$1" "$to"
    checked "$1" "$to" || { rm -rf "$to"; exit 1; }
    ;;
esac
