#!/bin/sh
# Ends with 127 if PostgreSQL is missing, so that a row says so.
set -eu
if ! "$(dirname "$0")/throwaway-postgres" --version >/dev/null 2>&1; then
  echo "PostgreSQL is not installed. ./setup layers installs it in a clone of Weighbridge" >&2
  exit 127
fi
