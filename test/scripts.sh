#!/usr/bin/env bash
# Lists the shell scripts of the repository: by their first line, not their name.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
	[[ -f $file ]] || continue
	IFS= read -r first <"$file" || continue
	if [[ $first =~ ^#!.*[/\ ](ba|da)?sh([ ]|$) ]]; then
		printf '%s\n' "$file"
	fi
done 2>/dev/null
