#!/bin/sh
# In the guest: enforce the plan and record it, while everything happens that can happen.
#
#   guest.sh ROUNDS STORM TURNS TIME [ARGUMENT OF run...]
#
# In each round two processes on each CPU wake each other TURNS times; beside them reservations, a container on both CPUs and
# hogs for TIME, STORM processes that come and go, a plan that becomes another (a budget and a period change, two nodes are
# replaced) and back, a CPU that goes and comes back.
# shellcheck source-path=SCRIPTDIR/../../tests/vm
. ./lib.sh
rounds=$1 storm=$2 turns=$3 time=$4
shift 4

sed 's/budget = "5ms"/budget = "4ms"/; s/period = "7ms"/period = "8ms"/; s/policy = "round-robin"/policy = "fair"/' \
	plan.toml >other.toml

begin run plan.toml --record /out/run.rec "$@" || exit
renice -n -19 -p "$loader" >/dev/null # it has to keep up with what is recorded
round=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1))
	meter service --name left --time "$time" >/dev/null &
	meters=$!
	meter spin --name hyper --time "$time" >/dev/null &
	meters="$meters $!"
	meter hogs --name hog --time "$time" >/dev/null &
	meters="$meters $!"
	for pair in first second; do
		meter pingpong --name "$pair-a,$pair-b" --count "$turns" >/dev/null &
		meters="$meters $!"
	done
	say "storm-$round" "$(meter forkstorm --count "$storm")"
	say "applied-$round" "$(tierce apply other.toml --json | grep -c '"change":')"
	echo 0 >/sys/devices/system/cpu/cpu1/online
	say "offline-$round" "\"$(cat /sys/devices/system/cpu/online)\""
	echo 1 >/sys/devices/system/cpu/cpu1/online
	say "online-$round" "\"$(cat /sys/devices/system/cpu/online)\""
	say "back-$round" "$(tierce apply plan.toml --json | grep -c '"change":')"
	# shellcheck disable=SC2086 # a list
	wait $meters
done
finish TERM
cat /out/run.err >&2
