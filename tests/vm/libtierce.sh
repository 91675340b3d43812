#!/bin/sh
# Programs in C that ask the manager through libtierce, one CPU, one boot. See crates/tierce-cli/tests/libtierce.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
say nobody "$(su alice -c './player 1')"
tierce-manager --no-bus --books /out/books.json 2>/out/manager.err &
manager=$!
begin plan pipewire.toml || exit
sleep 1
su bob -c 'exec meter hogs --count 8 --time 600s' >/dev/null 2>&1 &
hogs=$!
su alice -c 'exec ./player 100' >/out/player &
player=$!
tries=80
until grep -q '"less":' /out/player || [ $tries = 0 ]; do
	sleep 0.25
	tries=$((tries - 1))
done
say during "$(tierce request --list --json)"
tierce request --cancel 1 >/dev/null
wait $player
say player "$(cat /out/player)"
say exsched "$(su alice -c ./exsched)"
say after "$(tierce request --list --json)"
kill $hogs $manager
finish TERM
