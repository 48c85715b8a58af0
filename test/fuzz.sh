#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (5s by default), one after
# the other, and stops at the first input that fails.
#
#   test/fuzz.sh [PACKAGES]
set -euo pipefail
cd "$(dirname "$0")/.."

readonly fuzztime=${FUZZTIME:-5s}
readonly attempts_max=3

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# targets PACKAGES...: one line "PACKAGE TARGET" each. go test prints the names
# of a package, then its "ok" line.
targets() {
	go test -list '^Fuzz' "$@" | awk '
		/^Fuzz/ { names[++n] = $1 }
		/^ok /  { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }'
}

# fuzz PACKAGE TARGET. Until Go 1.27 the end of fuzztime can itself be reported
# as a failure, "context deadline exceeded", without a failing input
# (go.dev/issue/75804): that alone is tried again.
fuzz() {
	local attempt
	for ((attempt = 1; attempt <= attempts_max; attempt++)); do
		if go test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" "$1" >"$log" 2>&1; then
			printf 'fuzz: %s %s: %s\n' "$1" "$2" "$(grep -o 'execs: [0-9]*' "$log" | tail -n 1)"
			return
		fi
		if grep -q 'Failing input written' "$log" || ! grep -q '^ *context deadline exceeded' "$log"; then
			break
		fi
	done
	cat "$log" >&2
	printf 'fuzz: error: %s %s failed\n' "$1" "$2" >&2
	return 1
}

if [[ $# -eq 0 ]]; then
	set -- ./...
fi
list=$(targets "$@")
if [[ -z $list ]]; then
	echo 'fuzz: error: no fuzz target found' >&2
	exit 1
fi
while read -r package target; do
	fuzz "$package" "$target" </dev/null
done <<<"$list"
