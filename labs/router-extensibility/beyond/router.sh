#!/bin/sh
# `router.sh find apollo-router` says where it is, or ends with 127 and what is missing;
# `router.sh run apollo-router CONFIG` becomes it, `router.sh version …` asks it.
set -eu
task=$1 router=$2

case "$router" in
  gateway)
    program=../../target/tuned/gateway hint="cargo build --profile tuned -p gateway"
    # As one builds for production, or else the faster build.
    [ -x "$program" ] || program=../../target/release/gateway ;;
  apollo-router)
    program=${APOLLO_ROUTER:-$(command -v apollo-router || command -v router || true)}
    hint="put apollo-router on PATH, or name it in APOLLO_ROUTER" ;;
  hive_router)
    program=${HIVE_ROUTER:-$(command -v hive_router || true)}
    hint="put hive_router on PATH, or name it in HIVE_ROUTER" ;;
  *)
    echo "expected gateway, apollo-router or hive_router, found $router" >&2
    exit 2 ;;
esac

if [ ! -x "$program" ]; then
  echo "$router is not installed; $hint" >&2
  exit 127
fi
case "$task" in
  find) echo "$program" ;;
  version)
    if [ "$router" = hive_router ]; then
      # It takes no flags: asked for its version, it would serve.
      echo "hive_router, sha256 $(sha256sum < "$program" | cut -c1-12)"
      exit
    fi
    exec "$program" --version ;;
  run)
    if [ "$router" = hive_router ]; then
      # It has keys of its own, and a variable for their place.
      config=beyond/hive/$(basename "$3")
      export ROUTER_CONFIG_FILE_PATH="$config" HIVE_CONFIG_FILE_PATH="$config"
      # It looks for a relative path beside its configuration.
      SUPERGRAPH_FILE_PATH=$(realpath "$SUPERGRAPH_FILE_PATH")
      export SUPERGRAPH_FILE_PATH
      exec "$program"
    fi
    exec "$program" --config "$3" ;;
esac
