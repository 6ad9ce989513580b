#!/bin/sh
# Serves with what ./build.sh has built for. Both are told to spare memory for one CPU and 1 GiB.
# `--version` tells which one it is.
set -eu
if command -v dotnet >/dev/null 2>&1; then
  [ "${1:-}" != --version ] || exec dotnet --version
  export DOTNET_gcServer=0 DOTNET_TieredPGO=1
  exec dotnet build/dotnet/coprocessor.dll
fi
[ "${1:-}" != --version ] || exec mono --version=number
# A nursery of this size is collected seldom; what a request leaves behind is dead by then.
export MONO_GC_PARAMS=nursery-size=16m,soft-heap-limit=512m
exec mono --server build/coprocessor.exe
