#!/bin/sh
# Two CPUs that run at once: two kernel objects take turns beside a storm of processes and moves of all kinds. Time means little
# here. See crates/tierce-cli/tests/reload.rs.
# reload-storm.sh TIMES
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

./reload reload-2.toml "$1" >/out/turns.json 2>/out/turns.err &
reload=$!
until [ "$(state)" = enabled ]; do
	sleep 0.1
	kill -0 $reload || exit
done
again() {
	until [ -e /tmp/enough ]; do
		"$@" >/dev/null || echo "$* fails" >>/out/storm
	done
}
: >/out/storm
for what in affinity nice class cgroups kill threads execs; do
	again ./trouble $what 20 &
	storms="$storms $!"
done
again meter forkstorm --name crowd --count 100 --parallel 4 &
storms="$storms $!"
for name in hog hyper pair; do
	meter spin --name $name --time 1000s >/dev/null &
done
until [ "$(wc -l </out/turns.json)" -ge "$1" ] || ! kill -0 $reload 2>/dev/null; do
	sleep 0.5
done
: >/tmp/enough
# shellcheck disable=SC2086 # a list
wait $storms
wait $reload
say end "{\"code\":$?,\"state\":\"$(state)\",\"said\":\"$(tr '\n"' ' .' </out/turns.err)\",\"storm\":\"$(tr '\n' ' ' </out/storm)\"}"
cat /out/turns.json
