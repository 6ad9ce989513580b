#!/bin/sh
# Builds for dotnet where it is installed, else for Mono.
set -eu
mkdir -p build
if command -v dotnet >/dev/null 2>&1; then
  dotnet publish coprocessor.csproj --configuration Release --output build/dotnet --nologo
else
  mcs -optimize+ -warnaserror -warn:4 -out:build/coprocessor.exe \
    -lib:/usr/lib/cli/Newtonsoft.Json-5.0 -r:Newtonsoft.Json.dll -r:Mono.Posix.dll \
    ./*.cs mono/*.cs
fi
