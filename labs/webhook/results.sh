#!/bin/sh
# Prints RESULTS.md from the recordings of a day:
#   labs/webhook/results.sh target/release/weigh labs/webhook/records/2026-11-21 > labs/webhook/RESULTS.md
set -eu
weigh=$1
records=$2
echo "<!-- Made by \`labs/webhook/results.sh WEIGH $records\`; do not edit. -->"
echo
echo "# The webhook in its pod"
for name in webhook factors limits connections-1 connections-4 connections-16 connections-64; do
  if [ ! -d "$records/$name" ]; then continue; fi
  echo
  # Its heading is one of this page's.
  "$weigh" report "$records/$name" --format md | sed 's/^#/##/'
  if [ "$name" = webhook ]; then
    for variant in python rust; do
      printf '\n## %s as ApacheBench would print it\n\n```text\n' "$variant"
      "$weigh" report "$records/$name" --format ab --variant "$variant"
      printf '```\n'
    done
  fi
done
