#!/bin/sh
# Composes the supergraph of every corpus again, or of those that are named.
#
#   (cd ../tests/compose && npm ci)
#   ./compose.sh [corpus/NAME | refused/NAME]…
#
# Run by hand when a subgraph changes; what it writes is committed. A file `composer` in a corpus says
# whose composition it is (see ../tests/compose/compose.mjs).
set -eu
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- corpus/* refused/*
for folder in "$@"; do
    words=
    for file in "$folder"/subgraphs/*.graphql; do
        subgraph=$(basename "$file" .graphql)
        words="$words $subgraph=http://$subgraph.test/graphql=$file"
    done
    composer=$(cat "$folder/composer" 2>/dev/null || echo theguild)
    # Names of subgraphs hold no spaces.
    # shellcheck disable=SC2086
    if node "${COMPOSE:-../tests/compose/compose.mjs}" --composer="$composer" $words >"$folder/supergraph.new"; then
        mv "$folder/supergraph.new" "$folder/supergraph.graphql"
    else
        rm -f "$folder/supergraph.new"
        echo "$folder does not compose" >&2
    fi
done
