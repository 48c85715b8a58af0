#!/usr/bin/env bash
# Runs the data plane's tests, as it is and under sanitizers, in the checkout's build/.
set -euo pipefail
cd "$(dirname "$0")/../../.."

for sanitize in none address,undefined; do
	build=build/$sanitize
	[[ -d $build ]] || meson setup -Db_sanitize="$sanitize" "$build" overlay/dataplane
	meson test -C "$build" --print-errorlogs
done
