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
# As systemd does for a unit.
# shellcheck disable=SC2016 # for the shell there
systemd-cat sh -c 'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/$$/fd/2) exec tierce run "$1" >/dev/null' sh "$plan" &
loader=$!
soon tierce status
if tierce apply "$too_much" 2>/dev/null; then exit 1; fi
kill -INT $loader
wait $loader
journalctl --sync
journalctl --no-pager --output=json _COMM=tierce
