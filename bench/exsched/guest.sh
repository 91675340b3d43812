#!/bin/sh
# In the guest of ./run: what scheduling servers takes. All servers always want the CPU, and so does what is below them: whatever
# is done less than without servers is overhead.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh

begin exsched none.toml --policies all --stats counts || exit
for plan in none.toml server-*.toml; do
	name=${plan%.toml} servers=$(grep -c '^\[task.S' "$plan")
	if ! tierce apply "$plan" >"/out/$name.applied" 2>&1; then
		cat "/out/$name.applied"
		exit 1
	fi
	time=4s
	case $name in *random*) time=2s ;; esac
	at=$(in_ms 900)
	echo null >"/out/$name.servers"
	if [ "$servers" != 0 ]; then
		meter hogs --name "$([ "$servers" = 1 ] && echo S0 || echo S)" --count "$servers" --start "$at" --time $time \
			>"/out/$name.servers" &
		hogs=$!
	fi
	meter spin --start "$at" --time $time >"/out/$name.rest" &
	rest=$!
	sleep 0.6
	kill -STOP "$loader" # it looks around every 20 ms
	wait "$rest"
	[ "$servers" = 0 ] || wait "$hogs"
	kill -CONT "$loader"
	say "$name" "[$(cat "/out/$name.rest"),$(cat "/out/$name.servers")]"
done
finish TERM
