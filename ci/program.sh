#!/usr/bin/env bash
# Finds weigh, or builds it from the sources of this action; its path becomes the output `weigh`.
set -euo pipefail

if [[ -n "${INPUT_WEIGH:-}" ]]; then
  program=$(command -v "$INPUT_WEIGH" || true)
  if [[ -z "$program" ]]; then
    echo "::error::expected a program in the input \`weigh\`, found \`$INPUT_WEIGH\`, which is not there"
    exit 1
  fi
elif ! program=$(command -v weigh); then
  if ! command -v cargo > /dev/null; then
    echo "::error::neither weigh nor cargo is on PATH; install one of them in a step before this"
    exit 1
  fi
  target="${RUNNER_TEMP:-/tmp}/weighbridge"
  cargo build --quiet --release --locked --package weigh \
    --manifest-path "$GITHUB_ACTION_PATH/Cargo.toml" --target-dir "$target"
  program="$target/release/weigh"
fi
echo "weigh=$program" >> "$GITHUB_OUTPUT"
