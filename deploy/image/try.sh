#!/bin/bash
# Builds an image and tries it, without a container engine and without a registry of images: buildah builds (chroot
# isolation, vfs), on a Debian 12 root made by mmdebstrap in the place of the base image.
#   deploy/image/try.sh serve|reconcile      as root, after `make setup`; apt-get install buildah iproute2 mmdebstrap
# Takes up to 8 GB below TMPDIR while it runs, and leaves nothing. What was built is tried without a network.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:-}
[[ $target =~ ^(serve|reconcile)$ ]] || { echo "usage: deploy/image/try.sh serve|reconcile" >&2; exit 2; }
base=docker.io/library/python:3.11-slim-bookworm
work=$(mktemp -d)
net=realmgate-try-$$
served=
export BUILDAH_ISOLATION=chroot
buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
say() { echo "try: $*" >&2; }
clean() {
  [ -z "$served" ] || kill "$served" 2>/dev/null || true
  "${buildah[@]}" rm -a >/dev/null 2>&1 || true
  "${buildah[@]}" rmi -a -f >/dev/null 2>&1 || true
  ip netns delete "$net" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

make_base() { # with the certificates that this machine trusts
  mmdebstrap -q --variant=minbase --include=ca-certificates,python3-dev,python3-venv bookworm "$work/base"
  cp -a /usr/local/share/ca-certificates/. "$work/base/usr/local/share/ca-certificates/"
  chroot "$work/base" update-ca-certificates >/dev/null
  printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$work/base/etc/pip.conf"
  local made
  made=$("${buildah[@]}" from scratch)
  "${buildah[@]}" add -q "$made" "$work/base" / >/dev/null
  "${buildah[@]}" config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$made"
  "${buildah[@]}" commit -q --rm "$made" "$base" >/dev/null
  rm -rf "$work/base"
}
config() { # FIELD: its words in the image, a line each
  "${buildah[@]}" inspect --type image tried | .venv/bin/python -c '
import json, sys
value = json.load(sys.stdin)["Docker"]["config"]
for name in sys.argv[1].split("."):
    value = value[name]
print(*value, sep="\n")' "$1"
}
inside() { # WORDS...: in the container, as its user, in a network of its own that leads nowhere
  ip netns exec "$net" "${buildah[@]}" run --volume "$work/realm:/var/lib/realmgate" \
    --volume "$work/reports:/var/lib/realmgate-reports" "$container" -- "$@"
}
until_it_does() { # WORDS...
  for _ in $(seq 300); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  say "not within a minute: $*"
  return 1
}

gateway() { # the process of the image that serves: buildah's own are in that network, too
  local pid
  for pid in $(ip netns pids "$net"); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != realmgate ] || echo "$pid"
  done
}
client() { # WORDS...: this checkout's, beside the container
  ip netns exec "$net" .venv/bin/realmgate "$@" --url amqp://127.0.0.1:5672 >/dev/null
}

try_serve() { # with its own configuration and healthcheck
  local health pid began code=0
  mapfile -t health < <(config Healthcheck.Test | tail -n +2) # behind the word CMD
  ! inside "${health[@]}" 2>/dev/null || { say "the healthcheck passes where nothing serves"; return 1; }
  inside "${start[@]}" >"$work/ready" 2>"$work/log" &
  served=$!
  until_it_does inside "${health[@]}"
  client send demo.orders --count 300
  client receive demo.orders --count 300
  pid=$(gateway)
  [ "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")" = 10001 ]
  began=$(date +%s%N)
  kill -TERM "$pid"
  wait "$served" || code=$?
  served=
  local took_ms=$((($(date +%s%N) - began) / 1000000))
  say "it ended $took_ms ms after SIGTERM, with exit code $code"
  [ "$code" = 0 ] && [ "$took_ms" -le 5000 ]
}
try_reconcile() { # of a copy of a realm that this checkout has served
  inside "${start[0]}" reconcile --help >/dev/null
  inside /opt/realmgate/bin/python -c 'from reconciliation.engine.connector import jars_in; print(*jars_in(None))'
  printf '%s\n' 'listen: ["amqp://127.0.0.1:0"]' 'realm: {kind: embedded, path: served}' \
    'nodes: {create_on_attach: ["demo.*"]}' >"$work/gateway.yaml"
  .venv/bin/realmgate serve --config "$work/gateway.yaml" >"$work/ready" &
  served=$!
  until_it_does grep -q ^ready "$work/ready"
  local url
  read -r _ url _ <"$work/ready"
  .venv/bin/realmgate send demo.orders --count 300 --url "$url" >/dev/null
  .venv/bin/realmgate receive demo.orders --count 200 --url "$url" >/dev/null
  kill "$served"
  wait "$served"
  served=
  cp -a "$work/served" "$work/realm/realm"
  chown -R 10001 "$work/realm"
  inside env SPARK_LOCAL_IP=127.0.0.1 "${start[@]}" # buildah's name of a container has no address
  ls "$work/reports" >&2
}
say "a Debian 12 root in the place of $base"
make_base
say "building $target"
"${buildah[@]}" build -q --pull-never --layers=false --format docker -f deploy/image/Containerfile --target "$target" \
  -t tried . >/dev/null
container=$("${buildah[@]}" from --pull-never tried)
mapfile -t start < <(config Entrypoint && config Cmd)
say "it takes $(du -sm "$("${buildah[@]}" mount "$container")" | cut -f1) MB, and starts: ${start[*]}"
ip netns add "$net"
ip -n "$net" link set lo up
chmod 711 "$work"
mkdir -m 755 "$work/realm" "$work/reports"
chown 10001 "$work/realm" "$work/reports"
[ "$(inside id -u)" = 10001 ]
"try_$target"
say "$target works"
