#!/bin/sh
# In the guest of ./run: time per switch under the kernel's own schedulers, then under plans, then control operations.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh

say EEVDF "$(meter pingpong --count 10000)"
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
for depth in 1 4 8; do
	for end in a b; do
		group=/sys/fs/cgroup level=0
		while [ "$level" -lt "$depth" ]; do
			[ "$group" = /sys/fs/cgroup ] || echo +cpu >"$group/cgroup.subtree_control"
			echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
			group=$group/$end level=$((level + 1))
			mkdir -p "$group"
		done
		eval "group_$end=$group"
	done
	# shellcheck disable=SC2154 # by eval
	say "cgroups, depth $depth" "$(meter pingpong --count 10000 --group "$group_a" --group "$group_b")"
	find /sys/fs/cgroup/a /sys/fs/cgroup/b -depth -type d -exec rmdir {} +
done
# turns NAME PLAN STOP [ARGUMENT...]: time per switch under a plan, beside its hogs; with STOP the loader, which looks around every
# 20 ms, is stopped meanwhile. The hogs begin before, and spread over a second, which is the period of their budgets: so it does not
# matter which part of a period is measured.
turns() {
	name=$1 plan=$2 stop=$3
	shift 3
	hogs=$(grep -c '^\[task.hog' "$plan")
	TIERCE_DEBUG=1 begin "$name" "$plan" "$@" || exit
	at=$(in_ms $((800 + hogs * 7)))
	meter hogs --count "$hogs" --name hog --apart "$((1000000 / hogs))us" --time 20s >/dev/null &
	meter=$!
	meter pingpong --count 10000 --name ping,pong --start "$at" >"/out/$name.meter" &
	ends=$!
	sleep "$(awk -v n="$hogs" 'BEGIN { print 0.6 + n * 0.006 }')"
	[ -z "$stop" ] || kill -STOP "$loader"
	wait "$ends"
	[ -z "$stop" ] || kill -CONT "$loader"
	kill "$meter"
	say "$name" "$(cat "/out/$name.meter")"
	finish TERM
}
for plan in plan-*.toml; do
	name=${plan%.toml}
	turns "$name" "$plan" stop --stats counts
	say "$name-arms" "$(sed -n 's/^tierce: cpu 0: .*dispatches: \([0-9]*\),.* arms: \([0-9]*\),.*/[\2,\1]/p' "/out/$name.err")"
	case $name in *-2) turns "preset-${name#plan-}" "$plan" '' ;; esac # as `tierce run` does it if nothing is said
done
say control "$(./control)"
begin socket apply-a.toml --stats counts || exit
say socket "$(./control /run/tierce.sock)"
say kept "$(./control /run/tierce.sock kept)"
finish TERM

# What the loader takes, of a CPU: a second alone, then while 50 processes a second begin that match nothing.
loader_ran() {
	cat /proc/"$loader"/task/*/schedstat | awk '{ ran += $1 } END { printf "%.0f", ran }'
}
# loader_takes COMMAND...: thousandths of a CPU while that runs
loader_takes() {
	before_ns=$(loader_ran) began_ms=$(now_ms)
	"$@"
	echo $((($(loader_ran) - before_ns) / 1000 / ($(now_ms) - began_ms)))
}
processes() {
	left=250
	while [ $left -gt 0 ]; do
		left=$((left - 1))
		sleep 0.019
	done
}
begin loader desktop.toml || exit
sleep 1
say loader "[$(loader_takes sleep 3),$(loader_takes processes)]"
finish TERM
