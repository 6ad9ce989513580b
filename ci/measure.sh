#!/usr/bin/env bash
# Runs weigh pr. Its exit code is an output, so that the comment is written before the job fails.
set -uo pipefail

recordings="${RUNNER_TEMP:-/tmp}/weighbridge-recordings"
comment="${RUNNER_TEMP:-/tmp}/weighbridge-comment.md"
# Words separated by spaces are what these two inputs are.
# shellcheck disable=SC2206
labs=($INPUT_LAB)
# shellcheck disable=SC2206
flags=($INPUT_ARGUMENTS)
if [[ -n "$INPUT_BASE" ]]; then
  flags+=(--base "$INPUT_BASE")
fi
while IFS= read -r gate; do
  if [[ -n "${gate// /}" ]]; then
    flags+=(--gate "$gate")
  fi
done <<< "$INPUT_GATES"
if [[ "$INPUT_FAIL_ON_UNDECIDED" != true ]]; then
  flags+=(--undecided pass)
fi

"$WEIGH" pr "${labs[@]}" "${flags[@]}" --out "$recordings" --format comment > "$comment"
code=$?
cat "$comment"
{
  echo "exit-code=$code"
  echo "comment=$comment"
  if [[ -d "$recordings" ]]; then
    echo "recordings=$recordings"
  fi
} >> "$GITHUB_OUTPUT"
