# Sourced: which ports are free, and a free one. PORTS_FROM, PORTS: it is one of these (default: 10000 to 29999, below
# those that the kernel gives to outgoing connections, so that none of them takes it between here and the bind).

is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# But none of its arguments: these are given to others, which need not listen yet.
free_port() {
  local port
  while :; do
    port=$((${PORTS_FROM:-10000} + RANDOM % ${PORTS:-20000}))
    case " $* " in *" $port "*) continue ;; esac
    if is_free "$port"; then echo "$port"; return; fi
  done
}
