#!/bin/sh
# What a reservation is beside forks, wake-ups and moves of another user, two CPUs, one boot. See `attack` in
# crates/tierce-cli/tests/kernel.rs and docs/security.md.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# had PID: the CPU time of a thread, in us, and the times since boot before and after it was read, in ms
had() {
	awk '{ printf "%s%d", FNR == NR ? "" : ",", $1 * (FILENAME ~ /uptime/ ? 1000 : 0.001) }' \
		/proc/uptime "/proc/$1/schedstat" /proc/uptime
}

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
begin attack security.toml || exit
su alice -c 'exec meter spin --name sure --time 300s' >/dev/null &
sure=$!
su bob -c 'exec meter forkstorm --name crowd --count 100000 --parallel 16' >/dev/null &
storm=$!
su bob -c 'exec meter cyclic --name waker --interval 100us --time 300s' >/dev/null &
waker=$!
su bob -c 'exec trouble affinity 1000000' >/dev/null 2>&1 &
mover=$!
sleep 0.5
before=$(had $sure)
sleep 2
say attack "{\"before\":[$before],\"after\":[$(had $sure)]}"
kill $storm $waker $mover $sure
finish TERM
