#!/bin/sh
# Ends with 127 if PostgreSQL is missing, so that a row says so.
set -eu
if ! services/catalog/throwaway-postgres --version >/dev/null 2>&1; then
  echo "PostgreSQL is not installed. Run ./setup layers" >&2
  exit 127
fi
