#!/bin/sh
# Prints the text of scanned PDF pages. Arguments: file, Tesseract language, first page, last page.
set -eu

file=${1:?give the PDF as first argument}
language=${2:-eng}
first=${3:-1}
last=${4:-$((first + 19))}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pdftoppm -r 300 -gray -png -f "$first" -l "$last" -- "$file" "$work/page"
for image in "$work"/page-*.png; do
    [ -e "$image" ] || { echo "no page between $first and $last" >&2; exit 1; }
    number=${image##*-}
    echo "--- page ${number%.png} ---"
    tesseract "$image" - -l "$language" 2>/dev/null
done
