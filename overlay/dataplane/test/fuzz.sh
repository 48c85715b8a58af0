#!/usr/bin/env bash
# Runs the data plane's fuzzer for FUZZTIME_OTHERS (by default FUZZTIME, or 10s), as
# test/fuzz.sh does Go's, beginning with its corpus and what was found before. ONLY is as
# there; it is "overlay/dataplane hostile".
set -euo pipefail
cd "$(dirname "$0")/../../.."

[[ 'overlay/dataplane hostile' =~ ${ONLY:-.} ]] || exit 0
time=${FUZZTIME_OTHERS:-${FUZZTIME:-10s}}
case $time in
*h) seconds=$((${time%h} * 3600)) ;;
*m) seconds=$((${time%m} * 60)) ;;
*) seconds=${time%s} ;;
esac
build=build/fuzz
[[ -d $build ]] || CC=clang meson setup -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false "$build" overlay/dataplane
meson compile -C "$build" fuzz-hostile
found=${XDG_CACHE_HOME:-$HOME/.cache}/skerry/fuzz/hostile
mkdir -p "$found"
"$build/fuzz-hostile" -max_total_time="$seconds" -max_len=4096 -timeout=10 -artifact_prefix=overlay/dataplane/test/corpus/hostile/ \
	"$found" overlay/dataplane/test/corpus/hostile 2>&1 | tee "$build/fuzz.log" | grep -E 'ERROR|not so|Test unit|Done' ||
	{ tail -n 50 "$build/fuzz.log" >&2; exit 1; }
