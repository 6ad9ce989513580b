#!/bin/sh
# Ends with 127 if a program of `./setup layers` is missing: installed.sh PROGRAM
set -eu
if [ ! -x "$(dirname "$0")/.programs/bin/$1" ]; then
  echo "$1 is not installed. Run ./setup layers" >&2
  exit 127
fi
