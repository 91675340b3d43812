#!/bin/sh
# In the guest of ./run: what containers take from a process below them, by how many there are.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh

begin oxc containers-0.toml --policies all --stats counts || exit
for n in $NUMBERS; do
	if ! tierce apply "containers-$n.toml" >/out/applied 2>&1; then
		cat /out/applied
		exit 1
	fi
	# Each begins its periods a fair part of a period after the one before: all turns are alike.
	begin=$(awk -v n="$n" 'NR == 1 { printf "%d", ($1 + 1.5 + n * 0.012) * 1000 }' /proc/uptime)
	meters='' i=0
	while [ "$i" -lt "$n" ]; do
		# shellcheck disable=SC2086 # a command, or nothing
		$AS meter spin --name "c$i" --start "$((begin * 1000 + i * 200))us" --time 3s >/dev/null &
		meters="$meters $!"
		i=$((i + 1))
	done
	meter spin --name below --start "$((begin + 1000))ms" --time 1s >/out/below &
	below=$!
	sleep "$(awk -v at="$begin" 'NR == 1 { print at / 1000 - $1 + 0.1 }' /proc/uptime)"
	kill -STOP "$loader" # it looks around every 20 ms
	wait "$below"
	kill -CONT "$loader"
	say "$n" "$(cat /out/below)"
	# shellcheck disable=SC2086 # a list
	[ -z "$meters" ] || wait $meters
done
finish TERM
