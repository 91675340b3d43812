#!/bin/sh
# A real journald takes what the loader reports: its entries, as JSON, on standard output.
#
#   journal.sh PLAN TOO_MUCH      a plan to enforce, and one that is refused
set -eu
plan=$1 too_much=$2

soon() { # COMMAND...: is it so within 60 s?
	tries=600
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || { echo "not so: $*" >&2; exit 1; }
		sleep 0.1
	done
}

mkdir -p /run/systemd/journal /run/log/journal /etc
echo 0123456789abcdef0123456789abcdef >/etc/machine-id
systemd-journald &
soon test -S /run/systemd/journal/stdout
systemd-cat --identifier=unit "$(command -v tierce)" run "$plan" >/dev/null &
loader=$!
soon tierce status
if tierce apply "$too_much" 2>/dev/null; then exit 1; fi
kill -INT $loader
wait $loader
journalctl --sync
journalctl --no-pager --output=json
