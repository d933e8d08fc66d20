#!/bin/sh
# Installs into an empty folder and builds use.c with what pkg-config says, as another program would.
# run.sh BUILD CC
set -eu
build=$1 cc=$2
here=$(dirname "$0")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$build" --prefix "$place" > "$place/log"
PKG_CONFIG_PATH=$place/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs lanewise)
# shellcheck disable=SC2086
"$cc" -std=c17 -Wall -Wextra -Werror "$here/use.c" -o "$place/use" $flags
got=$("$place/use")
[ "$got" = "lanewise $("$place/bin/lanewise" --version | sed -n '1s/^lanewise //p'): score 1, 3M1I5M" ] || {
    echo "use.c printed: $got"
    exit 1
}
