#!/bin/sh
# Runs PgBouncer with a configuration file: pgbouncer.sh FILE
# PgBouncer refuses to run as root, so root lets it become another user after it has read the file.
set -eu
user=postgres
id "$user" >/dev/null 2>&1 || user=nobody
if [ "$(id -u)" = 0 ]; then
  exec pgbouncer -u "$user" "$1"
fi
exec pgbouncer "$1"
