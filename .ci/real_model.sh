# Sourced by .ci/run: a small language model on loopback, where the tool that serves one lies beside this repository.
# Sets NIGHTLAB_TEST_MODEL_URL; returns 1 where there is none, or where it can not be made ready here.
real_model_start() {
  local tool=../shared/tools/real-model/serve.py cache=${XDG_CACHE_HOME:-$HOME/.cache}/nightlab-real-model
  [ -f "$tool" ] || return 1
  timeout 600 python3 "$tool" --cache "$cache" --prepare >/dev/null || return 1
  RM_PORT=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  python3 "$tool" --cache "$cache" --port "$RM_PORT" --threads 1 >/dev/null 2>&1 &
  RM_PID=$!
  for _ in $(seq 60); do
    if python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$RM_PORT/health', timeout=2)" 2>/dev/null; then
      export NIGHTLAB_TEST_MODEL_URL="http://127.0.0.1:$RM_PORT/v1"
      return 0
    fi
    sleep 1
  done
  real_model_stop
  return 1
}

real_model_stop() {
  [ -n "${RM_PID:-}" ] || return 0
  pkill -P "$RM_PID" 2>/dev/null || true
  kill "$RM_PID" 2>/dev/null || true
  RM_PID=
}
