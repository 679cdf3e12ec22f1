#!/bin/bash
# Names what the machine lacks, and the one command that installs it. Installs nothing.
#   deploy/prerequisites.sh run|test|long|bench             exit 1 when something is missing
#   deploy/prerequisites.sh --packages run|test|long|bench  prints the Debian packages that are missing, or nothing
# `run` is what the product needs, `test` adds the foreign clients, `long` what looks at the product from outside
# (a browser, Prometheus, SQLite's command), `bench` the peer's journal.
# PYTHON: the interpreter.
set -euo pipefail
list=no
if [ "${1:-}" = --packages ]; then list=yes; shift; fi
level=${1:-run}
python=${PYTHON:-python3}
whats=()
packages=()

need() { # WHAT PACKAGES COMMAND...: the command succeeds when it is there
  local what=$1 debian=$2
  shift 2
  "$@" >/dev/null 2>&1 && return
  whats+=("$what")
  packages+=($debian) # several words: several packages
}
python_has() { "$python" -c "$1"; }
at_least() { # MAJOR COMMAND...: the first number in what the command prints
  local wanted=$1 found
  shift
  command -v "$1" || return # the shell's own complaint has numbers in it too
  found=$("$@" 2>&1 | grep -oE '[0-9]+' | head -1)
  [ "${found:-0}" -ge "$wanted" ]
}
header() { echo "#include <$1>" | cc -E -x c -; }

need "Python 3.11 ($python)" "python3" python_has 'import sys; assert sys.version_info[:2] == (3, 11)'
need "Python's venv" "python3-venv" python_has 'import ensurepip, venv'
need "Python's headers" "python3-dev" python_has \
  'import os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")'
need "a C compiler (cc) with its headers" "build-essential" header stdio.h
need "Java 17 or newer" "openjdk-17-jdk-headless" at_least 17 java -version
need "Maven" "maven" mvn --version
need "flock" "util-linux" command -v flock
if [ "$level" != run ]; then
  need "Java's compiler" "openjdk-17-jdk-headless" command -v javac
  need "Node 18 or newer" "nodejs" at_least 18 node --version
  need "npm" "npm" command -v npm
  need "OpenSSL's command, 3 or newer (certificates of the tests)" "openssl" at_least 3 openssl version
  need "systemd's analyzer (the units of deploy/systemd)" "systemd" command -v systemd-analyze
  if [ "$(id -u)" = 0 ]; then # no other user makes network namespaces
    need "ip (hosts whose packets to each other are lost)" "iproute2" command -v ip
    need "nft (the same)" "nftables" command -v nft
  fi
  need "Qpid Proton's C headers, 0.37 or newer" "libqpid-proton11-dev" header proton/connection_driver.h
fi
if [ "$level" = long ]; then
  need "Chromium (the console in a browser)" "chromium" command -v chromium
  need "Prometheus (alerts and the dashboard)" "prometheus" command -v prometheus
  need "promtool (tests of the alerts)" "prometheus" command -v promtool
  need "SQLite's command (a backup of an embedded realm)" "sqlite3" command -v sqlite3
fi
if [ "$level" = bench ]; then
  need "libaio (the peer's journal)" "libaio1" sh -c '/sbin/ldconfig -p | grep -q libaio.so.1'
fi

[ ${#whats[@]} -gt 0 ] || exit 0
wanted=$(printf '%s\n' "${packages[@]}" | sort -u | tr '\n' ' ')
if [ "$list" = yes ]; then
  echo "$wanted"
  exit 0
fi
{
  echo "realmgate needs, and this machine lacks:"
  printf '  * %s\n' "${whats[@]}"
  echo "On Debian this installs it (as root):"
  echo "  apt-get update && apt-get install -y $wanted"
} >&2
exit 1
