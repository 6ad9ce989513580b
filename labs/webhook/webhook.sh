#!/bin/sh
# Builds, runs and names the webhook in one of its languages, for systems.yaml:
#   webhook.sh build|run|version rust|python PROFILE INTO
set -eu
cd "$(dirname "$0")/../.."
profile=$3
into=$4
# Cargo calls the folder of `dev` otherwise.
rust="$into/$([ "$profile" = dev ] && echo debug || echo "$profile")/route-webhook"
python=services/route-webhook/python
case "$1 $2" in
  "build rust")
    exec cargo build --quiet --locked --profile "$profile" --target-dir "$into" --package route-webhook
    ;;
  "run rust") exec "$rust" ;;
  "version rust") exec "$rust" --version ;;
  "build python")
    python3 -m venv "$python/build"
    exec "$python/build/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
      --requirement "$python/requirements.txt"
    ;;
  "run python") exec "$python/build/bin/python" "$python/main.py" ;;
  "version python")
    exec "$python/build/bin/python" -c \
      'import platform, starlette, uvicorn; print("Python", platform.python_version() + ", Starlette", starlette.__version__ + ", uvicorn", uvicorn.__version__)'
    ;;
  *)
    echo "webhook.sh: expected build, run or version and rust or python, found \`$*\`" >&2
    exit 2
    ;;
esac
