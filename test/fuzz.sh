#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (by default 5s), those of the fabric
# and the proxy, whose bytes come from others, for FUZZTIME_OTHERS (by default FUZZTIME,
# or 10s), and begins no other after the first input that fails. As many run at once as
# there are cores, or JOBS, with one worker each. ONLY is a regular expression of those
# to run, each of which is "PACKAGE TARGET".
#
#   test/fuzz.sh [PACKAGES]
#   ONLY='native FuzzServe|source/file' FUZZTIME_OTHERS=1h test/fuzz.sh
#
# go test -fuzz links a program for each target, and compiles all that it depends on
# anew, with the counters that guide a fuzzer: with client-go that is minutes. Here a
# package is linked once, and Skerry's own code has counters.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
module=$(go list -m)
corpus=$(go env GOCACHE)/fuzz # where go test -fuzz keeps what it found

# targets PACKAGES...: one line "PACKAGE TARGET" each.
targets() {
	local package file
	go list -f '{{range .TestGoFiles}}{{$.ImportPath}} {{.}}
{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{.}}
{{end}}' "$@" | while read -r package file; do
		[[ -z $file ]] || sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$package \1|p" ".${package#"$module"}/$file"
	done
}

# fuzz PACKAGE TARGET. Until Go 1.27 the end of fuzztime can itself be
# reported as a failure, "context deadline exceeded", without a failing input
# (go.dev/issue/75804): that alone is tried again.
fuzz() {
	local attempt execs fuzztime=${FUZZTIME:-5s} log=$work/$2.${1//\//-}.log
	local -r attempts_max=3
	[[ $1 != */fabric/* && $1 != */proxy/* ]] || fuzztime=${FUZZTIME_OTHERS:-${FUZZTIME:-10s}}
	for ((attempt = 1; attempt <= attempts_max; attempt++)); do
		if (cd ".${1#"$module"}" && "$work/${1##*/}.test" -test.run '^$' -test.fuzz "^$2\$" \
			-test.parallel 1 -test.fuzztime "$fuzztime" -test.fuzzcachedir "$corpus/$1") >"$log" 2>&1; then
			if execs=$(grep -oE 'execs: [0-9]+|coverage: [1-9][0-9]*/[0-9]+' "$log" | tail -n 1); then
				printf 'fuzz: %s %s: %s\n' "$1" "$2" "$execs"
				return
			fi
			break # it has not begun
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
if ! list=$(targets "$@" | grep -E "${ONLY:-.}"); then
	printf 'fuzz: error: no fuzz target found in %s%s\n' "$*" "${ONLY:+ that $ONLY matches}" >&2
	exit 1
fi
mapfile -t packages < <(cut -d ' ' -f 1 <<<"$list" | sort -u)
go test -c -o "$work/" -gcflags="$module/...=-d=libfuzzer" "${packages[@]}"
export work module corpus
export -f fuzz
xargs -P "${JOBS:-$(nproc)}" -L 1 bash -c 'fuzz "$@" || exit 255' fuzz <<<"$list" # 255: begin no other
