#!/bin/sh
# Plays every script of test/golden and compares with what it printed when it was last
# looked at: golden.sh SCRIPT-PROGRAM FOLDER; with UPDATE=1 that is written down anew.
set -eu
failed=0
for script in "$2"/*.in; do
	want=${script%.in}.out
	if [ -n "${UPDATE:-}" ]; then
		"$1" <"$script" >"$want"
	elif ! "$1" <"$script" | diff -u "$want" -; then
		echo "golden: error: $script went otherwise" >&2
		failed=1
	fi
done
exit "$failed"
