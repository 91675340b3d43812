#!/bin/sh
# A real journald takes what the loader reports: its entries, as JSON, on standard output.
#
#   journal.sh PLAN TOO_MUCH      a plan to enforce, and one that is refused
set -eu
plan=$1 too_much=$2
mkdir -p /run/systemd/journal /run/log/journal /etc
echo 0123456789abcdef0123456789abcdef >/etc/machine-id
systemd-journald &
until [ -S /run/systemd/journal/stdout ]; do sleep 0.1; done
systemd-cat --identifier=unit tierce run "$plan" --for 4s >/dev/null &
until tierce status >/dev/null 2>&1; do sleep 0.1; done
if tierce apply "$too_much" 2>/dev/null; then exit 1; fi
wait %2 || wait
journalctl --no-pager --output=json --sync >/dev/null 2>&1 || true
journalctl --no-pager --output=json
