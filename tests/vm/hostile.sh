#!/bin/sh
# One user does all at once that may hurt another one: STORM threads (1,000) that change names, fork, wake, yield and move between CPUs,
# a thousand requests per second, two thousand connections that say nothing. Two CPUs, or one. See `a_hostile_user` in
# crates/tierce-cli/tests/manager.rs and docs/security.md.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# peak PID: the most memory it has had, in KiB
peak() {
	awk '/^VmHWM/ { printf "%d", $2 }' "/proc/$1/status"
}
# look NAME: what is promised and received, beside a thousand threads: to show these on the console takes seconds, and the CPUs with it
look() {
	tierce status --json >"/out/$1.status"
}
# polite NAME: alice asks, for 3 s
polite() {
	su alice -c "POLITE=/tmp/$1 exec ./clients --exact polite_client" >/out/"$1".log 2>&1
	say "$1" "$(cat "/tmp/$1")"
}

[ "$(nproc)" -gt 1 ] || sed -i 's/^cpus = 2/cpus = 1/; s/cpu = 1,/cpu = 0,/' hostile.toml
printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
echo bob:165536:65536 >/etc/subuid
tierce manager --rule limit-per-user --books /out/books.json 2>/out/manager.err &
manager=$!
begin hostile hostile.toml || exit
chmod 1777 /tmp
sleep 0.5
su alice -c 'exec meter spin --name sure --time 3000s' >/dev/null &
sure=$!
sleep 0.2
polite alone
before=$(peak $manager)
loader_before=$(peak "$loader")
(
	# shellcheck disable=SC3045 # busybox has it
	ulimit -u 30000
	exec su bob -c "sleep 1; exec trouble storm ${STORM:-1000}"
) 2>/dev/null &
RUDE=/tmp/rude ./clients --exact rude_client >/out/rude.log 2>&1 &
rude=$!
sleep 2
look before
polite beside
look after
wait $rude
say rude "$(cat /tmp/rude)"
say memory "{\"manager\":[$before,$(peak $manager)],\"loader\":[$loader_before,$(peak "$loader")]}"
killall -9 trouble
kill $sure
finish TERM
kill $manager
