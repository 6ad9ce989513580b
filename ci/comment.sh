#!/usr/bin/env bash
# Writes the comment of weigh pr on a pull request, or replaces the one of an earlier run: the one of the
# same author that begins with the same mark. Who else writes the mark could change the answer later.
set -euo pipefail

if [[ ! -s "${COMMENT:-}" ]]; then
  echo "nothing was measured, so there is no comment"
  exit 0
fi
comments="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
mark=$(head -n 1 "$COMMENT")
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# The token goes over standard input: arguments of processes can be read by all users of a machine.
ask() {
  local method=$1 url=$2
  shift 2
  local status
  status=$(curl --silent --show-error --max-time 30 --retry 2 --output "$answer" --write-out '%{http_code}' \
    --config <(printf 'header = "Authorization: Bearer %s"\n' "$INPUT_TOKEN") \
    --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' \
    --request "$method" "$@" "$url")
  if [[ "$status" != 2* ]]; then
    echo "::warning::the comment was not written: $method $url answered $status;" \
      "the job needs \`permissions: pull-requests: write\`, which jobs of forks do not get"
    return 1
  fi
}

earlier=
for page in $(seq 1 30); do
  ask GET "$comments?per_page=100&page=$page" || exit 0
  earlier=$(jq --raw-output --arg mark "$mark" --arg author "$INPUT_AUTHOR" '
    map(select(.user.login == $author)
      | select(.body // "" | split("\n")[0] | rtrimstr("\r") == $mark)) | .[0].url // empty' "$answer")
  if [[ -n "$earlier" || $(jq length "$answer") -lt 100 ]]; then
    break
  fi
done

body=$(jq --null-input --rawfile body "$COMMENT" '{body: $body}')
if [[ -n "$earlier" ]]; then
  ask PATCH "$earlier" --data-binary @- --header 'Content-Type: application/json' <<< "$body" || exit 0
else
  ask POST "$comments" --data-binary @- --header 'Content-Type: application/json' <<< "$body" || exit 0
fi
