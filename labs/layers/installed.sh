#!/bin/sh
# Ends with 127 if a program is missing: installed.sh PROGRAM SETTING
set -eu
if ! command -v "$1" >/dev/null 2>&1; then
  echo "$2 is not installed as $1. ./setup layers installs it in a clone of Weighbridge. Or name yours: --with $2=PATH" >&2
  exit 127
fi
