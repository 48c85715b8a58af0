#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (by default 5s), those of the fabric
# and the proxy, whose bytes come from others, for FUZZTIME_OTHERS (by default FUZZTIME,
# or 10s), one after the other, and stops at the first input that fails.
#
#   test/fuzz.sh [PACKAGES]
#
# go test -fuzz links a program for each target, and compiles all that it depends on
# anew, with the counters that guide a fuzzer: with client-go that is minutes. Here a
# package is linked once, and Skerry's own code has counters.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly attempts_max=3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
corpus=$(go env GOCACHE)/fuzz # where go test -fuzz keeps what it found

# targets PACKAGES...: one line "PACKAGE FOLDER TARGET" each.
targets() {
	local package folder file
	go list -f '{{range .TestGoFiles}}{{$.ImportPath}} {{$.Dir}} {{.}}
{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{$.Dir}} {{.}}
{{end}}' "$@" | while read -r package folder file; do
		[[ -z $file ]] || sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$package $folder \1|p" "$folder/$file"
	done
}

# fuzz PACKAGE FOLDER TARGET. Until Go 1.27 the end of fuzztime can itself be
# reported as a failure, "context deadline exceeded", without a failing input
# (go.dev/issue/75804): that alone is tried again.
fuzz() {
	local attempt execs fuzztime=${FUZZTIME:-5s}
	[[ $1 != */fabric/* && $1 != */proxy/* ]] || fuzztime=${FUZZTIME_OTHERS:-${FUZZTIME:-10s}}
	for ((attempt = 1; attempt <= attempts_max; attempt++)); do
		if (cd "$2" && "$work/${1##*/}.test" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$fuzztime" \
			-test.fuzzcachedir "$corpus/$1") >"$log" 2>&1; then
			if execs=$(grep -oE 'execs: [0-9]+|coverage: [1-9][0-9]*/[0-9]+' "$log" | tail -n 1); then
				printf 'fuzz: %s %s: %s\n' "$1" "$3" "$execs"
				return
			fi
			break # it has not begun
		fi
		if grep -q 'Failing input written' "$log" || ! grep -q '^ *context deadline exceeded' "$log"; then
			break
		fi
	done
	cat "$log" >&2
	printf 'fuzz: error: %s %s failed\n' "$1" "$3" >&2
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
mapfile -t packages < <(cut -d ' ' -f 1 <<<"$list" | sort -u)
go test -c -o "$work/" -gcflags="$(go list -m)/...=-d=libfuzzer" "${packages[@]}"
while read -r package folder target; do
	fuzz "$package" "$folder" "$target" </dev/null
done <<<"$list"
