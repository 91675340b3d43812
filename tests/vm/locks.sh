#!/bin/sh
# Who waits for whose lock: threads with a mutex, one that inherits priorities, a lock of the kernel. See
# `it_is_known_who_waits_for_whose_lock` in crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

inside=
# three BY: the three threads for 2 s, with a mutex of that kind
three() {
	$inside meter locks --by "$1" --time 2s --thread high,10ms,2ms,1900us,500us,1ms --thread middle,20ms,2ms,7700us \
		--thread low,45ms,0ms,3900us,1ms,1500us
}

begin plain locks.toml --locks --trace /out/plain.trace || exit
say plain "$(three none)"
tierce status >/out/plain.status
say status "$(tierce status --json | tr -d '\n')"
finish TERM

# The same two kinds of mutex, and holders run in the place of waiters.
printf '[run]\nlocks = "inheritance"\n' | cat - locks.toml | sed 's/protocol = "none"/protocol = "inheritance"/' >inheritance.toml
begin inheritance inheritance.toml --locks --trace /out/inheritance.trace || exit
say inheritance "$(three none)"
finish TERM

begin inheritance-pi inheritance.toml --locks || exit
say inheritance-pi "$(three inherit)"
finish TERM

begin inherit locks.toml --locks || exit
say inherit "$(three inherit)"
finish TERM

# Their numbers are others there.
begin container locks.toml --locks || exit
inside="unshare --pid --fork"
say container "$(three none)"
finish TERM

# folder NAME PLAN: two threads that change one folder
folder() {
	begin "$1" "$2" --locks || exit
	mkdir -p /tmp/folder
	meter dirlock --role hold --dir /tmp/folder --name holder --time 2s >/dev/null &
	holder=$!
	say "$1" "$(meter dirlock --role wait --dir /tmp/folder --name waiter --interval 10ms --time 2s)"
	wait $holder
	finish TERM
}

folder kernel locks.toml
folder kernel-inheritance inheritance.toml

# Chains of waits, and two that wait for one lock, with both kinds of mutex. `low` goes on for 20 ms when it has given it back.
low="--thread low,100ms,0ms,24ms,1ms,3ms"
for by in none inherit; do
	begin waiters-$by lock-waiters.toml --locks || exit
	# shellcheck disable=SC2086
	say waiters-$by "$(meter locks --by $by --start "$(in_ms 700)" --time 1s --thread high,100ms,3ms,3ms,500us,1ms \
		--thread middle,100ms,2ms,3ms,500us,1ms --thread busy,100ms,4ms,10ms $low)"
	finish TERM
	begin chain-$by lock-chain.toml --locks || exit
	# shellcheck disable=SC2086
	say chain-$by "$(meter locks --by $by --start "$(in_ms 700)" --time 1s --thread high,100ms,4ms,3ms,500us,1ms:1 \
		--thread middle,100ms,2ms,6ms,500us,4ms:1,1ms,1ms --thread busy,100ms,3500us,10ms $low)"
	finish TERM
done

# Two that wait for one lock of the kernel. Beside them a thread whose number is one of theirs plus 16,384, so that it has the same place
# in the table of leaves that are known without a look into their storage.
printf '\n[task.other]\nunder.rt = { budget = "200us", period = "10ms" }\nmatch = { comm = "other" }\n' |
	cat inheritance.toml - >crowd.toml
begin crowd crowd.toml --locks || exit
meter dirlock --role hold --dir /tmp/folder --name holder --time 2s >/dev/null &
holder=$!
meter dirlock --role wait --dir /tmp/folder --name other --interval 10ms --time 2s >/out/other.json &
other=$!
meter dirlock --role wait --dir /tmp/folder --name waiter --interval 10ms --time 2s >/out/waiter.json &
waiter=$!
echo $((waiter + 16383)) >/proc/sys/kernel/ns_last_pid
meter cyclic --interval 1ms --time 2s >/dev/null &
twin=$!
wait $holder $other $waiter $twin
say crowd "{\"apart\":$((twin - waiter)),\"waiter\":$(cat /out/waiter.json),\"other\":$(cat /out/other.json)}"
finish TERM
