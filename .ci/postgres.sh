# Sourced by .ci/run: a throw-away PostgreSQL on loopback, as the user `postgres` when we are root.
# Sets NIGHTLAB_TEST_POSTGRES_URL.
postgres_start() {
  local bin
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
  if [ -z "$bin" ] || [ ! -x "$bin/initdb" ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
    bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  fi
  PG_DIR=$(mktemp -d /tmp/nightlab-pg.XXXXXX)
  chmod 0711 "$PG_DIR"
  PG_AS=()
  if [ "$(id -u)" = 0 ]; then
    chown postgres "$PG_DIR"
    PG_AS=(setpriv --reuid=postgres --regid=postgres --init-groups)
  fi
  PG_BIN=$bin
  PG_PORT=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  (cd / && "${PG_AS[@]}" "$PG_BIN/initdb" -D "$PG_DIR/data" -A trust -U postgres --no-sync >/dev/null)
  (cd / && "${PG_AS[@]}" "$PG_BIN/pg_ctl" -D "$PG_DIR/data" -w -l "$PG_DIR/log" \
    -o "-p $PG_PORT -k $PG_DIR -c listen_addresses=127.0.0.1 -c fsync=off" start >/dev/null)
  export NIGHTLAB_TEST_POSTGRES_URL="postgresql://postgres@127.0.0.1:$PG_PORT/postgres"
}

postgres_stop() {
  (cd / && "${PG_AS[@]}" "$PG_BIN/pg_ctl" -D "$PG_DIR/data" -m immediate stop >/dev/null 2>&1) || true
  rm -rf "$PG_DIR"
}
