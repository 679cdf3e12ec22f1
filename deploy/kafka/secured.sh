#!/bin/bash
# Starts one real Kafka node on loopback that admits authenticated clients only, for tests and trials: a
# listener for SASL_SSL (SCRAM-SHA-512, PLAIN), one for certificates (mTLS), rights by ACL, and no rights to begin with.
# Prints both addresses: 127.0.0.1:SASL 127.0.0.1:MTLS. Idempotent, as start.sh; stopped by stop.sh.
# KAFKA_DIR: its directory (default var/kafka-secured). In its tls/: ca.pem; NAME.pem and NAME.key of broker, admin (may
# do everything), gateway; gateway.password, for both mechanisms, made here and good for nothing else.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ports.sh
. "$here/ports.sh"
root=$(cd "$here/../.." && pwd)
command -v openssl >/dev/null || {
  echo "kafka: 'openssl' is missing. Debian: apt-get install -y openssl" >&2
  exit 1
}
export KAFKA_DIR=${KAFKA_DIR:-$root/var/kafka-secured}
umask 077
mkdir -p "$KAFKA_DIR/tls"
KAFKA_DIR=$(cd "$KAFKA_DIR" && pwd)
tls=$KAFKA_DIR/tls
exec 7>"$KAFKA_DIR/secured.lock"
flock 7

key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256)
certificate() { # NAME: a key (PKCS 8) and a certificate of our authority
  openssl req -new "${key[@]}" -nodes -subj "/CN=$1" -keyout "$tls/$1.key" -out "$tls/$1.csr" 2>/dev/null
  openssl x509 -req -in "$tls/$1.csr" -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -CAcreateserial -days 3650 \
    -extfile <(echo "subjectAltName=IP:127.0.0.1,DNS:localhost") -out "$tls/$1.pem" 2>/dev/null
}
if [ ! -f "$tls/done" ]; then
  openssl req -x509 "${key[@]}" -nodes -subj "/CN=realmgate test authority" -days 3650 \
    -keyout "$tls/ca.key" -out "$tls/ca.pem" 2>/dev/null
  for name in broker admin gateway; do certificate "$name"; done
  cat "$tls/broker.key" "$tls/broker.pem" >"$tls/broker.store"
  openssl rand -hex 24 >"$tls/gateway.password"
  free_port "${KAFKA_PORT:-}" >"$tls/mtls-port"
  touch "$tls/done"
fi
mtls=$(cat "$tls/mtls-port")
password=$(cat "$tls/gateway.password")
plain=org.apache.kafka.common.security.plain.PlainLoginModule
scram=org.apache.kafka.common.security.scram.ScramLoginModule
cat >"$tls/extra.properties" <<PROPERTIES
listeners=SASL://127.0.0.1:@PORT@,MTLS://127.0.0.1:$mtls,CONTROLLER://127.0.0.1:@CONTROLLER@
advertised.listeners=SASL://127.0.0.1:@PORT@,MTLS://127.0.0.1:$mtls,CONTROLLER://127.0.0.1:@CONTROLLER@
listener.security.protocol.map=SASL:SASL_SSL,MTLS:SSL,CONTROLLER:SSL
inter.broker.listener.name=MTLS
ssl.keystore.type=PEM
ssl.keystore.location=$tls/broker.store
ssl.truststore.type=PEM
ssl.truststore.location=$tls/ca.pem
listener.name.mtls.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]+).*\$/\$1/
listener.name.sasl.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.sasl.scram-sha-512.sasl.jaas.config=$scram required;
listener.name.sasl.plain.sasl.jaas.config=$plain required user_gateway="$password";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:broker;User:admin
PROPERTIES
export KAFKA_TAKEN=$mtls KAFKA_EXTRA=$tls/extra.properties KAFKA_CA=$tls/ca.pem KAFKA_TRIES=900
export KAFKA_JVM=${KAFKA_JVM:--Xms512m -Xmx512m -XX:TieredStopAtLevel=1}
export KAFKA_FORMAT="--add-scram=SCRAM-SHA-512=[name=gateway,password=$password]"
sasl=$("$here/start.sh" 7>&-)
echo "$sasl 127.0.0.1:$mtls"
