#!/bin/sh
# A program is calibrated, and from then on whoever starts it gets what its threads need. One CPU, one boot. See
# crates/tierce-cli/tests/manager.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# listed NAME: requests, as root sees them
listed() {
	say "$1" "$(tierce request --list --json | tr -d '\n')"
}
# twins USER NAME: another one, with two threads of one name
twins() {
	su "$1" -c "exec twins" >/out/twins.log 2>&1 &
	twins=$!
	sleep 4
	listed "$2"
	kill "$twins"
	wait "$twins"
}
# player USER NAME: the program, run by a user; its number is in $player
player() {
	su "$1" -c "exec player player.json" >/out/player.log 2>&1 &
	player=$!
	sleep 2
	listed "$2"
}
stop() {
	kill "$player"
	wait "$player"
	rm -f /tmp/rt-app*
	sleep 1
}
# manager NAME POLICY: what it says goes to /out/NAME.err
manager() {
	sed "s/\"leave\"/\"$2\"/" programs.toml >config.toml
	tierce manager --config config.toml --books /out/books.json 2>"/out/$1.err" &
	manager=$!
	until tierce request --list >/dev/null 2>&1; do sleep 0.2; done
}

of_bob=/var/lib/tierce/users/1002/tierce/profiles/usr/bin
mkdir -p /home/alice /home/bob $of_bob
printf 'alice:x:1001:1001::/home/alice:/bin/sh\nbob:x:1002:1002::/home/bob:/bin/sh\n' >>/etc/passwd
cp "$(command -v rt-app)" /usr/bin/player
tierce calibrate --json --for 4s -- player player.json >/out/player.json
say calibrated $?
tierce calibrate --json --for 4s -- twins >/out/twins.json
say twins-calibrated $?
tierce calibrate --show twins >/out/twins.said
rm -f /tmp/rt-app* # its logs are root's
chmod 1777 /tmp

begin first manager.toml || exit
manager first-manager leave
player alice granted
threads=
for task in /proc/"$player"/task/*; do
	threads="$threads${threads:+,}\"$(cat "$task/comm")\":${task##*/}"
done
say threads "{$threads}"
tierce status --json >/out/status.json
stop
listed ended
twins alice twins

# For bob another one holds.
sed 's/^reservation = .*/reservation = { budget = "1ms", period = "10ms" }/' /var/lib/tierce/profiles/usr/bin/player.toml \
	>$of_bob/player.toml
sleep 3
player bob of-bob
stop
player alice of-alice
stop

# A program of his own at that path, by a mount namespace.
cp /usr/bin/player /tmp/own
printf x >>/tmp/own
su bob -c 'exec unshare -U -r -m sh -c "mount --bind /tmp/own /usr/bin/player && exec player player.json"' >/out/player.log 2>&1 &
player=$!
sleep 2
say other-program "\"$(readlink /proc/$player/exe)\""
listed other
stop

# Another program at the same place.
printf x >>/usr/bin/player
player alice left
stop
kill "$manager"
wait "$manager"
manager second-manager calibrate
player alice before
for _ in 1 2 3 4 5 6 7 8; do
	sleep 5
	! tierce request --list | grep -q granted || break
done
listed after
stop
listed over
kill "$manager"
wait "$manager"
finish TERM
